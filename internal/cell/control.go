package cell

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// kind is the first byte of a packet; doc.go says who sends which.
type kind byte

const (
	kindHello kind = iota + 1
	kindWelcome
	kindReady
	kindDraining
	kindAnnounce
	kindConfirmed
	kindRemovals
	kindFlush
	kindConfirm
	kindStream
	kindBye
)

// A packet has at most maxIDs ids. That keeps it far below the buffer of a socket
// (net.core.wmem_default, 208 KiB), of which it must be a part.
const (
	idSize    = 8
	maxIDs    = 4096
	maxPacket = 1 + maxIDs*idSize
)

// errPacket is wrapped by the errors of what the other end should not have sent.
var errPacket = errors.New("unexpected packet")

// packet returns one without ids.
func packet(k kind) []byte { return []byte{byte(k)} }

func appendID(p []byte, id int64) []byte {
	return binary.LittleEndian.AppendUint64(p, uint64(id))
}

// eachID calls f for each id of ids.
func eachID(ids []byte, f func(id int64)) {
	for ; len(ids) >= idSize; ids = ids[idSize:] {
		f(int64(binary.LittleEndian.Uint64(ids)))
	}
}

// control is one end of a pair. One goroutine may receive; any may send.
type control struct {
	conn *net.UnixConn
	buf  []byte // what was received last
	oob  []byte // room for the descriptor of a stream; empty: none is taken
}

// newControl takes file over. streams says whether descriptors are received.
func newControl(file *os.File, streams bool) (*control, error) {
	conn, err := unixConn(file)
	if err != nil {
		return nil, err
	}
	// One byte more than the largest: longer packets are cut and must show.
	c := &control{conn: conn, buf: make([]byte, maxPacket+1)}
	if streams {
		c.oob = make([]byte, syscall.CmsgSpace(4))
	}
	return c, nil
}

// send writes p, and file with it unless that is nil, as one packet.
func (c *control) send(p []byte, file *os.File) error {
	if file == nil {
		_, err := c.conn.Write(p)
		return err
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	cerr := raw.Control(func(fd uintptr) {
		_, _, err = c.conn.WriteMsgUnix(p, syscall.UnixRights(int(fd)), nil)
	})
	return errors.Join(cerr, err)
}

// receive waits for a packet: its kind, its ids, and the descriptor that came along,
// or nil. ids are valid until the next call. When the other end is closed the error
// wraps io.EOF, after a close of this one net.ErrClosed.
func (c *control) receive() (k kind, ids []byte, file *os.File, err error) {
	n, oobn, _, _, err := c.conn.ReadMsgUnix(c.buf, c.oob)
	if errors.Is(err, syscall.ECONNRESET) {
		// The other end is gone and left something unread. The error is told once, and
		// before what it had sent, which may be a removal.
		n, oobn, _, _, err = c.conn.ReadMsgUnix(c.buf, c.oob)
	}
	if err != nil {
		return 0, nil, nil, err
	}
	if file, err = descriptor(c.oob[:oobn]); err != nil {
		return 0, nil, nil, err
	}
	k, ids = kind(c.buf[0]), c.buf[1:n]
	hasIDs := k == kindAnnounce || k == kindRemovals
	if n > maxPacket || len(ids)%idSize != 0 || hasIDs != (len(ids) > 0) {
		if file != nil {
			_ = file.Close() // the error is the one below
		}
		return 0, nil, nil, fmt.Errorf("%w of kind %d with %d bytes", errPacket, k, n)
	}
	return k, ids, file, nil
}

// discard reads until the other end is closed.
func (c *control) discard() {
	for err := error(nil); err == nil || errors.Is(err, errPacket); {
		_, _, _, err = c.receive() // supervisors get no file
	}
}

// descriptor returns the one that came with a packet, or nil.
func descriptor(oob []byte) (*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, os.NewSyscallError("recvmsg", err)
	}
	for i := range messages {
		// There is room for one descriptor, so there cannot be two.
		if fds, err := syscall.ParseUnixRights(&messages[i]); err == nil && len(fds) > 0 {
			return os.NewFile(uintptr(fds[0]), "stream"), nil
		}
	}
	return nil, nil
}

// unixConn takes file over.
func unixConn(file *os.File) (*net.UnixConn, error) {
	defer file.Close() //nolint:errcheck // the connection has a duplicate
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	if unix, ok := conn.(*net.UnixConn); ok {
		return unix, nil
	}
	_ = conn.Close() // it is not what was asked for
	return nil, fmt.Errorf("descriptor of a %s connection, want a unix one", conn.LocalAddr().Network())
}
