//go:build linux

package affinity

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Both calls below are about the calling thread. Their last argument but two,
// maxnode, is one more than the bits the kernel looks at (get_nodes in
// mm/mempolicy.c).

// setPolicy wants no words for a mode that takes no nodes. Bits of nodes the
// kernel has no room for are an EINVAL.
func setPolicy(mode int, words []uint) error {
	var mask unsafe.Pointer
	maxnode := uintptr(0)
	if len(words) > 0 {
		mask = unsafe.Pointer(unsafe.SliceData(words))
		maxnode = uintptr(len(words)*wordBits) + 1
	}
	_, _, errno := unix.RawSyscall(unix.SYS_SET_MEMPOLICY, uintptr(mode), uintptr(mask), maxnode)
	if errno != 0 {
		return errno
	}
	return nil
}

// getPolicy fills words, which must not be empty. EINVAL means that they are
// fewer than the kernel's nodes.
func getPolicy(words []uint) (mode int, err error) {
	var m int32
	_, _, errno := unix.RawSyscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&m)),
		uintptr(unsafe.Pointer(unsafe.SliceData(words))), uintptr(len(words)*wordBits)+1, 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(m), nil
}
