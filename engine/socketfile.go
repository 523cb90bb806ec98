package engine

import (
	"net"
	"os"
	"strings"
)

// files are socket files by path, as they were when they were listened on.
type files map[string]os.FileInfo

// socketFiles finds the files of the Unix listeners; an abstract socket has none.
func socketFiles(lns []net.Listener) files {
	found := make(files)
	for _, ln := range lns {
		addr, ok := ln.Addr().(*net.UnixAddr)
		if !ok || strings.HasPrefix(addr.Name, "@") {
			continue
		}
		if info, err := os.Lstat(addr.Name); err == nil {
			found[addr.Name] = info
		}
	}
	return found
}

// remove removes the files that are still those of the listeners, and not of
// somebody who has listened on the path since.
func (f files) remove() {
	for path, info := range f {
		// A file system may give the number of a removed file to the next one.
		now, err := os.Lstat(path)
		if err == nil && os.SameFile(now, info) && now.ModTime().Equal(info.ModTime()) {
			_ = os.Remove(path)
		}
	}
}
