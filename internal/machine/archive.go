package machine

import (
	"fmt"
	"io"
	"io/fs"
	"math"
)

// Archive writes a cpio archive in the "newc" format, which the kernel unpacks
// into its first file system (Documentation/driver-api/early-userspace/buffer-format.rst).
// Files belong to root. Errors are sticky: check the one of Close.
type Archive struct {
	w       io.Writer
	inode   uint32 // the next one; two files of one inode would be two links to it
	written int64
	err     error
}

// NewArchive returns an archive that is written to w.
func NewArchive(w io.Writer) *Archive { return &Archive{w: w} }

// Dir adds a directory. Its parent must have been added before.
func (a *Archive) Dir(name string) { a.entry(name, 0o040755, device{}, nil) }

// File adds a regular file with the given permissions, and its content.
func (a *Archive) File(name string, perm fs.FileMode, content []byte) {
	a.entry(name, 0o100000|uint32(perm.Perm()), device{}, content)
}

// Device adds a character device that only root may use.
func (a *Archive) Device(name string, major, minor uint32) {
	a.entry(name, 0o020600, device{major, minor}, nil)
}

type device struct{ major, minor uint32 }

// Close ends the archive; it does not close the writer below.
func (a *Archive) Close() error {
	a.entry("TRAILER!!!", 0, device{}, nil)
	return a.err
}

// entry writes one header, name and content, each padded to four bytes.
func (a *Archive) entry(name string, mode uint32, dev device, content []byte) {
	if int64(len(content)) > math.MaxUint32 {
		a.fail(fmt.Errorf("archive %s: %d bytes are too many for its format", name, len(content)))
		return
	}
	header := []byte("070701")
	for _, field := range [...]uint32{
		a.inode, mode, 0, 0, 1, 0, // owner, group and time are 0; one link
		uint32(len(content)), 0, 0, dev.major, dev.minor, uint32(len(name)) + 1, 0,
	} {
		header = fmt.Appendf(header, "%08x", field)
	}
	a.inode++
	a.write(append(append(header, name...), 0))
	a.pad()
	a.write(content)
	a.pad()
}

func (a *Archive) pad() {
	a.write(make([]byte, -a.written&3))
}

func (a *Archive) write(p []byte) {
	if a.err != nil {
		return
	}
	n, err := a.w.Write(p)
	a.written += int64(n)
	a.fail(err)
}

func (a *Archive) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}
