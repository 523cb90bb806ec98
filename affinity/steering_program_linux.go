package affinity

import "golang.org/x/sys/unix"

// Classic BPF, see Documentation/networking/filter.rst: an accumulator, and
// jumps that only go forward, conditional ones by at most 255.
const (
	opLoad    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	opAdd     = unix.BPF_ALU | unix.BPF_ADD | unix.BPF_K
	opMod     = unix.BPF_ALU | unix.BPF_MOD | unix.BPF_K
	opJump    = unix.BPF_JMP | unix.BPF_JA
	opJumpGE  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	opReturn  = unix.BPF_RET | unix.BPF_K
	opReturnA = unix.BPF_RET | unix.BPF_A

	// Loads from these offsets are no bytes of the packet (SKF_AD_OFF + ...
	// in include/uapi/linux/filter.h).
	loadCPU    = 1<<32 - 0x1000 + 36
	loadRandom = 1<<32 - 0x1000 + 56

	// noListener is beyond any group, for which the kernel takes its hash
	// (reuseport_select_sock in net/core/sock_reuseport.c).
	noListener = 1<<32 - 1

	// maxLength is the kernel's limit (BPF_MAXINSNS).
	maxLength = unix.BPF_MAXINSNS

	// tail marks a jump to the code of a route, which is put behind the
	// search, by a distance no real jump has; the rest of it is which.
	tail = 1 << 31
)

// program returns s in classic BPF: a binary search over the routes, and at
// its leaves what computes the index of the listener. The four instructions
// of a random choice are there once for all its routes, since machines that
// number CPUs by turns over their nodes have a route for each CPU.
func (s Steering) program() ([]unix.SockFilter, error) {
	routes, err := s.routes()
	if err != nil {
		return nil, err
	}
	// A route takes at least a comparison and a return, but for the first.
	if len(routes) > maxLength/2 {
		return nil, ErrSteeringTooLarge
	}
	var tails []route
	which := make(map[[2]uint32]uint32) // by first and count
	leaf := func(r route) []unix.SockFilter {
		switch r.kind {
		case fixed:
			return []unix.SockFilter{{Code: opReturn, K: r.first}}
		case oneEach:
			// The accumulator is the CPU; 32 bits that wrap also subtract.
			return []unix.SockFilter{{Code: opAdd, K: r.first - r.lo}, {Code: opReturnA}}
		case random:
			key := [2]uint32{r.first, r.count}
			n, ok := which[key]
			if !ok {
				n = uint32(len(tails))
				tails = append(tails, r)
				which[key] = n
			}
			return []unix.SockFilter{{Code: opJump, K: tail | n}}
		default:
			return []unix.SockFilter{{Code: opReturn, K: noListener}}
		}
	}

	program := append([]unix.SockFilter{{Code: opLoad, K: loadCPU}}, search(routes, leaf)...)
	end := len(program)
	for i, op := range program {
		if op.Code == opJump && op.K&tail != 0 {
			program[i].K = uint32(end - i - 1 + tailLength*int(op.K&^tail))
		}
	}
	for _, r := range tails {
		program = append(program, randomListener(r)...)
	}
	if len(program) > maxLength {
		return nil, ErrSteeringTooLarge
	}
	return program, nil
}

const tailLength = 4

func randomListener(r route) []unix.SockFilter {
	return []unix.SockFilter{
		{Code: opLoad, K: loadRandom},
		{Code: opMod, K: r.count},
		{Code: opAdd, K: r.first},
		{Code: opReturnA},
	}
}

// search finds the last of routes whose lo is not above the accumulator, and
// goes on with its leaf.
func search(routes []route, leaf func(route) []unix.SockFilter) []unix.SockFilter {
	if len(routes) == 1 {
		return leaf(routes[0])
	}
	mid := len(routes) / 2
	below, above := search(routes[:mid], leaf), search(routes[mid:], leaf)
	var program []unix.SockFilter
	if n := len(below); n <= 255 {
		program = []unix.SockFilter{{Code: opJumpGE, Jt: uint8(n), K: routes[mid].lo}}
	} else {
		program = []unix.SockFilter{
			{Code: opJumpGE, Jf: 1, K: routes[mid].lo},
			{Code: opJump, K: uint32(n)},
		}
	}
	return append(append(program, below...), above...)
}
