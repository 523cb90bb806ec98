package affinity

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// roleEnv turns the test binary into the process under test: masks and
// GOMAXPROCS belong to a process, and these tests must not change their own.
const roleEnv = "AFFINITY_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		if err := play(role, os.Args[1:]); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// play does what one role asks for and prints what the process then sees.
func play(role string, args []string) error {
	fmt.Println("start:", os.Getpid())
	fmt.Println("guard:", os.Getenv(guardEnv))
	if role == "main-thread" {
		return playMainThread()
	}
	busyThreads(4) // before: must be moved, or end
	where, err := parsePlacement(args[0])
	if err != nil {
		return err
	}
	switch role {
	case "report":
	case "linger":
		time.Sleep(lingers)
		return nil
	case "launch":
		return playLaunch(where, args)
	case "pin":
		err = Pin(where.CPUs)
	case "reexec":
		err = Reexec(where)
	case "reexec-deleted":
		// The restarted run finds it gone.
		if err := os.Remove(args[1]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		err = Reexec(where)
	case "apply":
		d, errApply := Apply(where.CPUs, share(args))
		fmt.Println("decision:", d)
		fmt.Println("gomaxprocs:", runtime.GOMAXPROCS(0))
		return errApply
	default:
		err = fmt.Errorf("no role %q", role)
	}
	if err != nil {
		return err
	}
	busyThreads(4) // after: must inherit
	return report()
}

// parsePlacement reads what [Placement.String] returns.
func parsePlacement(s string) (Placement, error) {
	cpus, memory, _ := strings.Cut(s, "@")
	var p Placement
	err := errors.Join(p.CPUs.UnmarshalText([]byte(cpus)), p.Memory.UnmarshalText([]byte(memory)))
	return p, err
}

// share is the second argument, if there is one.
func share(args []string) float64 {
	if len(args) < 2 {
		return 1
	}
	f, err := strconv.ParseFloat(args[1], 64)
	if err != nil {
		return -1
	}
	return f
}

// lingers is longer than any test, and ends what a killed test left.
const lingers = 2 * time.Minute

// busyThreads starts n threads that stay.
func busyThreads(n int) {
	ready := make(chan struct{})
	for range n {
		go func() {
			runtime.LockOSThread()
			ready <- struct{}{}
			select {}
		}()
	}
	for range n {
		<-ready
	}
}

// onThread calls f on a thread of its own, which ends with it whatever mask or
// policy it has then. The main thread would not end, and is [Allowed]'s.
func onThread(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if onMainThread() {
			result <- onThread(f) // held here, so there it is another
			runtime.UnlockOSThread()
			return
		}
		result <- f()
	}()
	return <-result
}

func report() error {
	files, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil {
		return err
	}
	for _, file := range files {
		status, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		_, list, _ := strings.Cut(string(status), "\nCpus_allowed_list:\t")
		list, _, _ = strings.Cut(list, "\n")
		fmt.Println("mask:", list)
	}
	if err := reportMemory(); err != nil {
		return err
	}
	fmt.Println("numcpu:", runtime.NumCPU())
	fmt.Println("args:", strings.Join(os.Args[1:], "|"))
	_, guarded := os.LookupEnv(guardEnv)
	fmt.Println("guarded:", guarded)
	fmt.Println("kept:", os.Getenv("AFFINITY_TEST_KEPT"))
	dir, err := os.Getwd()
	fmt.Println("dir:", dir)
	name, errName := os.ReadFile("/proc/self/comm")
	fmt.Println("name:", strings.TrimSpace(string(name)))
	return errors.Join(err, errName)
}

// reportMemory prints the memory policy that each thread's memory has, without
// that of regions with a policy of their own: of these a Go program has none.
func reportMemory() error {
	files, err := filepath.Glob("/proc/self/task/*/numa_maps") // CONFIG_NUMA
	if err != nil {
		return err
	}
	for _, file := range files {
		maps, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		// ADDRESS POLICY ...
		f := strings.Fields(string(maps))
		if len(f) < 2 {
			return fmt.Errorf("%s: %q", file, maps)
		}
		fmt.Println("memory:", f[1])
	}
	return nil
}

// process is a run of the test binary in a role.
type process struct {
	binary string // default: this one
	role   string
	args   []string
	env    []string
	dir    string
}

// lines are what it printed, by key, in order.
type lines map[string][]string

func (p process) run(t *testing.T) (lines, error) {
	t.Helper()
	if p.binary == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		p.binary = self
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.binary, p.args...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Env = append(cmd.Env, roleEnv+"="+p.role)
	// A race build otherwise waits a second before it exits.
	cmd.Env = append(cmd.Env, strings.TrimSpace("GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0"))
	cmd.Dir = p.dir
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	got := lines{}
	for sc := bufio.NewScanner(bytes.NewReader(out)); sc.Scan(); {
		key, value, _ := strings.Cut(sc.Text(), ": ")
		got[key] = append(got[key], value)
	}
	if stderr.Len() > 0 {
		t.Logf("%s: %s", p.role, stderr.String())
	}
	return got, err
}

// twoCPUs returns the first two CPUs this test may use, each as a list.
func twoCPUs(t *testing.T) (first, second string) {
	t.Helper()
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	cpus := slices.Collect(allowed.All())
	if len(cpus) < 2 {
		skip(t, "a mask can be narrowed only where there are two CPUs; allowed here: %v", allowed)
	}
	return fmt.Sprint(cpus[0]), fmt.Sprint(cpus[1])
}

func (l lines) wantMasks(t *testing.T, list string) {
	t.Helper()
	if len(l["mask"]) < 8 {
		t.Errorf("only %d threads reported", len(l["mask"]))
	}
	for _, mask := range l["mask"] {
		if mask != list {
			t.Errorf("masks %v, want %s for every thread", l["mask"], list)
			return
		}
	}
}

func TestPinMovesEveryThread(t *testing.T) {
	_, cpu := twoCPUs(t)
	got, err := process{role: "pin", args: []string{cpu}}.run(t)
	if err != nil {
		t.Fatal(err, got)
	}
	got.wantMasks(t, cpu)
	if len(got["start"]) != 1 {
		t.Errorf("Pin restarted the process")
	}
}

func TestReexecRestartsOnTheMask(t *testing.T) {
	_, cpu := twoCPUs(t)
	dir := t.TempDir()
	args := []string{cpu, "-flag=a b", "", "-"}
	got, err := process{
		role: "reexec", args: args, dir: dir, env: []string{"AFFINITY_TEST_KEPT=yes"},
	}.run(t)
	if err != nil {
		t.Fatal(err, got)
	}
	got.wantMasks(t, cpu)
	if s := got["start"]; len(s) != 2 || s[0] != s[1] {
		t.Errorf("process ids %v, want two starts of one", s)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(self)
	for key, want := range map[string]string{
		"numcpu":  "1",
		"args":    strings.Join(args, "|"),
		"guarded": "false",
		"kept":    "yes",
		"dir":     dir,
		"name":    name[:min(len(name), 15)], // TASK_COMM_LEN
	} {
		if v := got[key]; len(v) != 1 || v[0] != want {
			t.Errorf("%s: %q, want %q", key, v, want)
		}
	}
}

func TestReexecDoesNothingOnTheRightMask(t *testing.T) {
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	got, err := process{role: "reexec", args: []string{allowed.String()}}.run(t)
	if err != nil {
		t.Fatal(err, got)
	}
	got.wantMasks(t, allowed.String())
	if len(got["start"]) != 1 {
		t.Errorf("started %d times, want 1", len(got["start"]))
	}
}

// As long as the file is the program's, its own path names it; the other cases need a
// copy, and are those of TestReexecOfDeletedBinary and of package cell.
func TestExecutable(t *testing.T) {
	want, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Executable(); err != nil || got != want {
		t.Errorf("Executable() = %q, %v, want %q", got, err, want)
	}
}

// The path of a deleted binary starts nothing; /proc/self/exe still does.
func TestReexecOfDeletedBinary(t *testing.T) {
	_, cpu := twoCPUs(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, program, 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := process{binary: copied, role: "reexec-deleted", args: []string{cpu, copied}}.run(t)
	if err != nil {
		t.Fatal(err, got)
	}
	got.wantMasks(t, cpu)
	if len(got["start"]) != 2 {
		t.Errorf("started %d times, want 2", len(got["start"]))
	}
}

// A mask that is not there after the restart must not restart again.
func TestReexecGuard(t *testing.T) {
	_, cpu := twoCPUs(t)
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	got, err := process{
		role: "reexec", args: []string{cpu}, env: []string{guardEnv + "=" + cpu},
	}.run(t)
	if err == nil || len(got["start"]) != 1 || len(got["error"]) != 1 {
		t.Fatalf("%v, %v; want one start and an error", got, err)
	}
	for _, list := range []string{"asked for CPU mask " + cpu, "have " + allowed.String()} {
		if !strings.Contains(got["error"][0], list) {
			t.Errorf("error %q lacks %q", got["error"][0], list)
		}
	}

	// A guard of someone else changes nothing.
	got, err = process{
		role: "reexec", args: []string{cpu}, env: []string{guardEnv + "=0-4095"},
	}.run(t)
	if err != nil || len(got["start"]) != 2 {
		t.Errorf("a foreign guard: %v, %v; want two starts", got, err)
	}
}

func TestSetsThatCannotBeHad(t *testing.T) {
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	beyond := set(t, "4096,65535")
	l := NewLauncher()
	defer l.Close()
	for name, f := range map[string]func(Set) error{
		"Pin":    Pin,
		"Reexec": func(s Set) error { return Reexec(Placement{CPUs: s}) },
		"Do": func(s Set) error {
			return l.Do(Placement{CPUs: s}, func() error {
				t.Error("Do called start")
				return nil
			})
		},
	} {
		if err := f(Set{}); !errors.Is(err, ErrEmptySet) {
			t.Errorf("%s of the empty set: %v, want ErrEmptySet", name, err)
		}
		var na *NotAllowedError
		if err := f(allowed.Union(beyond)); !errors.As(err, &na) {
			t.Errorf("%s of CPUs not here: %v, want a NotAllowedError", name, err)
		} else if !na.CPUs.Equal(beyond) || !na.Allowed.Equal(allowed) {
			t.Errorf("%s: %v, want CPUs %v and allowed %v", name, err, beyond, allowed)
		}
	}
	if now, err := Allowed(); err != nil || !now.Equal(allowed) {
		t.Errorf("mask is now %v, %v, was %v", now, err, allowed)
	}
}

func TestNotAllowedErrorText(t *testing.T) {
	for _, tt := range []struct{ cpus, want string }{
		{"99", "CPU 99 is not allowed here (allowed: 0-1)"},
		{"4-7", "CPUs 4-7 are not allowed here (allowed: 0-1)"},
	} {
		err := &NotAllowedError{CPUs: set(t, tt.cpus), Allowed: set(t, "0-1")}
		if err.Error() != tt.want {
			t.Errorf("got %q, want %q", err, tt.want)
		}
	}
}

func TestAllowedIsTheKernelsList(t *testing.T) {
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	if allowed.Len() != runtime.NumCPU() {
		t.Errorf("allowed %v, but the runtime counted %d", allowed, runtime.NumCPU())
	}
	online, err := Online("/")
	if err != nil {
		t.Fatal(err)
	}
	if extra := allowed.Difference(online); !extra.Empty() {
		t.Errorf("allowed %v, online %v", allowed, online)
	}
}
