package affinity

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"
)

// interpret runs a program as the kernel would on this CPU, for which random
// is what the kernel throws. Anything the kernel's checker refuses
// (bpf_check_classic in net/core/filter.c) is an error.
func interpret(program []unix.SockFilter, cpu, random uint32) (result uint32, steps int, err error) {
	if len(program) == 0 || len(program) > 4096 {
		return 0, 0, fmt.Errorf("%d instructions", len(program))
	}
	var a uint32
	for pc := 0; pc < len(program); {
		op := program[pc]
		pc++
		steps++
		switch op.Code {
		case 0x20: // ld [k]
			switch op.K {
			case 0xfffff024:
				a = cpu
			case 0xfffff038:
				a = random
			default:
				return 0, steps, fmt.Errorf("load of %#x", op.K)
			}
		case 0x04: // add #k
			a += op.K
		case 0x94: // mod #k
			if op.K == 0 {
				return 0, steps, errors.New("division by 0")
			}
			a %= op.K
		case 0x05: // ja
			if uint64(pc)+uint64(op.K) >= uint64(len(program)) {
				return 0, steps, fmt.Errorf("jump by %d from %d of %d", op.K, pc, len(program))
			}
			pc += int(op.K)
		case 0x35: // jge #k
			if a >= op.K {
				pc += int(op.Jt)
			} else {
				pc += int(op.Jf)
			}
		case 0x06: // ret #k
			return op.K, steps, nil
		case 0x16: // ret a
			return a, steps, nil
		default:
			return 0, steps, fmt.Errorf("instruction %#x", op.Code)
		}
	}
	return 0, steps, errors.New("ran over the end")
}

// want is the slow and obvious way.
func (s Steering) want(cpu int, random uint32) uint32 {
	for _, t := range s {
		if t.CPUs.Contains(cpu) {
			return uint32(t.First) + random%uint32(t.Count)
		}
	}
	return 1<<32 - 1
}

// checkProgram tries every CPU from 0 to beyond the last in a target.
func (s Steering) checkProgram(t *testing.T) (program []unix.SockFilter) {
	t.Helper()
	program, err := s.program()
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	for _, target := range s {
		if m, ok := target.CPUs.max(); ok {
			last = max(last, m)
		}
	}
	for _, cpu := range append(make([]int, 0, last+4), last+1, last+2, 1<<20) {
		s.checkCPU(t, program, cpu)
	}
	for cpu := range last + 1 {
		s.checkCPU(t, program, cpu)
	}
	return program
}

func (s Steering) checkCPU(t *testing.T, program []unix.SockFilter, cpu int) {
	t.Helper()
	for _, random := range []uint32{2, 1<<32 - 1} {
		got, steps, err := interpret(program, uint32(cpu), random)
		if want := s.want(cpu, random); err != nil || got != want {
			t.Fatalf("CPU %d, random %d: %d, %v, want %d", cpu, random, got, err, want)
		}
		if steps > 2*16+6 { // a search among 2^16 CPUs, long jumps and a leaf
			t.Fatalf("CPU %d: %d steps", cpu, steps)
		}
	}
}

// onePerCPU sends CPU i of cpus to listener i.
func onePerCPU(cpus Set) Steering {
	var s Steering
	for cpu := range cpus.All() {
		s = append(s, Target{CPUs: SetOf(cpu), First: len(s), Count: 1})
	}
	return s
}

func TestSteeringProgram(t *testing.T) {
	for _, tt := range []struct {
		name     string
		steering Steering
		length   int // at most
	}{
		{"nobody", nil, 2},
		{"one CPU", Steering{{set(t, "0"), 0, 1}}, 5},
		{"one listener", Steering{{set(t, "0-7"), 3, 1}}, 5},
		{"not the first CPUs", Steering{{set(t, "5-6"), 0, 2}}, 12},
		{"two nodes", Steering{{set(t, "0-3"), 0, 4}, {set(t, "4-7"), 4, 4}}, 16},
		{"two nodes with SMT", Steering{{set(t, "0-3,8-11"), 0, 8}, {set(t, "4-7,12-15"), 8, 8}}, 20},
		{"nodes by turns", Steering{{set(t, "0-511:1/2"), 0, 256}, {set(t, "1-511:1/2"), 256, 256}}, 1100},
		{"same range twice", Steering{{set(t, "0"), 0, 2}, {set(t, "5"), 0, 2}, {set(t, "7"), 0, 3}}, 25},
		{"no CPUs", Steering{{Set{}, 0, 1}, {set(t, "1"), 1, 1}}, 8},
		{"a loop for each CPU", onePerCPU(set(t, "0-2047")), 6},
		{"a loop for each CPU of a part", onePerCPU(set(t, "1000-2047,4000-4500")), 16},
		{"a loop for each CPU, nodes by turns", append(onePerCPU(set(t, "0-1535:1/2")), onePerCPU(set(t, "1-1535:1/2"))...), 4096},
		{"a loop for each second CPU", onePerCPU(set(t, "0-1535:1/2")), 4096},
		{"backwards", Steering{{set(t, "2"), 0, 1}, {set(t, "1"), 1, 1}, {set(t, "0"), 2, 1}}, 10},
		{"next, then another", Steering{{set(t, "0"), 0, 1}, {set(t, "1"), 1, 1}, {set(t, "2"), 5, 1}}, 10},
		{"same then next", Steering{{set(t, "0-1"), 0, 1}, {set(t, "2"), 1, 1}, {set(t, "3"), 2, 1}}, 12},
		{"last CPU", Steering{{set(t, "65535"), 65534, 1}}, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if program := tt.steering.checkProgram(t); len(program) > tt.length {
				t.Errorf("%d instructions, want at most %d", len(program), tt.length)
			}
		})
	}
}

func TestSteeringProgramsByChance(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		// Runs of CPUs go to one of some targets, or to none.
		targets := make(Steering, 1+r.IntN(6))
		for i := range targets {
			targets[i].First, targets[i].Count = r.IntN(5), 1+r.IntN(2)
		}
		for cpu := r.IntN(3); cpu < 700; {
			n := 1 + r.IntN(1+r.IntN(40))
			if i := r.IntN(len(targets) + 1); i < len(targets) {
				targets[i].CPUs.addRange(cpu, cpu+n-1)
			}
			cpu += n
		}
		targets.checkProgram(t)
	}
}

// Programs of all lengths about where conditional jumps become too short.
func TestSteeringLongJumps(t *testing.T) {
	for n := 120; n < 160; n++ {
		var cpus Set
		for cpu := range n {
			cpus.addRange(2*cpu, 2*cpu)
		}
		onePerCPU(cpus).checkProgram(t)
	}
}

func TestSteeringRefused(t *testing.T) {
	for _, tt := range []struct {
		name     string
		steering Steering
	}{
		{"no listener", Steering{{set(t, "0"), 0, 0}}},
		{"fewer than none", Steering{{set(t, "0"), 0, -1}}},
		{"before the first", Steering{{set(t, "0"), -1, 1}}},
		{"beyond every group", Steering{{set(t, "0"), 65535, 1}}},
		{"overflow", Steering{{set(t, "0"), int(^uint(0) >> 1), 1}}},
		{"a CPU twice", Steering{{set(t, "0-3"), 0, 1}, {set(t, "3-4"), 1, 1}}},
		{"the same twice", Steering{{set(t, "0"), 0, 1}, {set(t, "0"), 0, 1}}},
	} {
		if program, err := tt.steering.program(); err == nil {
			t.Errorf("%s: no error, %d instructions", tt.name, len(program))
		}
	}
	_, err := onePerCPU(set(t, "0-8191:1/2")).program()
	if !errors.Is(err, ErrSteeringTooLarge) {
		t.Errorf("4,096 ranges: %v, want ErrSteeringTooLarge", err)
	}
}
