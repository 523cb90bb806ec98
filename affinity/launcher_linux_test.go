package affinity

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// playLaunch starts a child where it is told to and, if there is a second
// argument, becomes idle with it.
func playLaunch(where Placement, args []string) error {
	before, err := Allowed()
	if err != nil {
		return err
	}
	l := NewLauncher()
	role := "report"
	if len(args) > 1 {
		role = args[1]
	}
	child := exec.Command(os.Args[0], where.String())
	child.Env = append(os.Environ(), roleEnv+"="+role)
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	child.Stdout = os.Stdout // itself: a pipe would be copied by a goroutine
	if err := l.Do(where, child.Start); err != nil {
		return err
	}
	if role != "report" {
		return idle(child)
	}
	if err := child.Wait(); err != nil {
		return err
	}
	defer l.Close() // its thread is among those looked at

	fmt.Println("parent:", before)
	own, found, err := stray(before)
	if err != nil || found {
		return fmt.Errorf("a thread of the parent has mask %v, %w", own, err)
	}
	return nil
}

// idle gives the runtime time and reason to end threads, and then says which
// state the child is in.
func idle(child *exec.Cmd) error {
	for range 20 {
		runtime.GC()
		done := make(chan struct{})
		go func() { // a thread that does end
			runtime.LockOSThread()
			close(done)
		}()
		<-done
		time.Sleep(5 * time.Millisecond)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child.Process.Pid))
	if err != nil {
		return err
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	fmt.Println("child:", state[:1])
	time.Sleep(lingers)
	return nil
}

func TestLauncherPlacesChildren(t *testing.T) {
	_, cpu := twoCPUs(t)
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	got, err := process{role: "launch", args: []string{cpu}}.run(t)
	if err != nil {
		t.Fatal(err, got)
	}
	got.wantMasks(t, cpu)
	if p := got["parent"]; len(p) != 1 || p[0] != allowed.String() {
		t.Errorf("the parent's masks: %q, want %v", p, allowed)
	}
	got.wantMemory(t, "default")
}

func TestLauncherPlacesMemory(t *testing.T) {
	cpu, _ := twoCPUs(t)
	where := cpu + "@" + memoryNode(t)
	got, err := process{role: "launch", args: []string{where}}.run(t)
	if err != nil {
		t.Fatal(err, got)
	}
	got.wantMasks(t, cpu)
	got.wantMemory(t, "prefer:"+memoryNode(t))
}

// A child's death signal is bound to the thread that forked it: the child must
// outlive idle times of its parent, and must not outlive its parent.
func TestLauncherThreadLivesAsLongAsTheProcess(t *testing.T) {
	_, cpu := twoCPUs(t)
	parent := exec.Command(os.Args[0], cpu, "linger")
	parent.Env = append(os.Environ(), roleEnv+"=launch")
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = parent.Process.Kill() // if the test failed
		_ = parent.Wait()
	}()

	type answer struct {
		line string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadString('\n')
			if state, ok := strings.CutPrefix(line, "child: "); ok || err != nil {
				answers <- answer{strings.TrimSpace(state), err}
				break
			}
		}
		// The child holds the pipe too: its end is the end of both.
		_, err := io.Copy(io.Discard, r)
		answers <- answer{"", err}
	}()
	next := func(what string) answer {
		select {
		case a := <-answers:
			return a
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: nothing in 30 s", what)
			panic("unreachable")
		}
	}
	if a := next("idle"); a.err != nil || a.line != "S" {
		t.Fatalf("the child of an idle parent is in state %q, %v; want it asleep", a.line, a.err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if a := next("after the parent's end"); a.err != nil {
		t.Error(a.err)
	}
}

func TestLauncherErrors(t *testing.T) {
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	here := Placement{CPUs: allowed}
	l := NewLauncher()
	failed := errors.New("no such program")
	if err := l.Do(here, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("Do returns %v, want the error of start", err)
	}
	t.Run("memory", func(t *testing.T) {
		memoryNode(t)
		// Of 1,024 nodes the last is on no machine that runs tests.
		far := Placement{CPUs: allowed, Memory: set(t, "1023")}
		err := l.Do(far, func() error { t.Error("start was called"); return nil })
		if !errors.Is(err, syscall.EINVAL) {
			t.Errorf("memory of node 1023: %v, want EINVAL", err)
		}
	})
	if err := l.Do(here, func() error { return nil }); err != nil {
		t.Errorf("after errors: %v", err)
	}
	if err := l.Do(here, func() error { runtime.Goexit(); return nil }); !errors.Is(err, os.ErrClosed) {
		t.Errorf("start that ended its goroutine: %v, want os.ErrClosed", err)
	}
	l.Close()
	l.Close()
	err = l.Do(here, func() error { t.Error("start was called"); return nil })
	if !errors.Is(err, os.ErrClosed) {
		t.Errorf("Do after Close: %v, want os.ErrClosed", err)
	}
}

// Calls run on one thread, one at a time.
func TestLauncherSerialises(t *testing.T) {
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	l := NewLauncher()
	defer l.Close()
	const callers = 16
	errs := make(chan error, callers)
	tid, running := 0, 0 // the race detector watches
	for range callers {
		go func() {
			errs <- l.Do(Placement{CPUs: allowed}, func() error {
				running++
				defer func() { running-- }()
				if tid == 0 {
					tid = syscall.Gettid()
				}
				if own := syscall.Gettid(); own != tid || running != 1 {
					return fmt.Errorf("thread %d and %d, %d at once", tid, own, running)
				}
				return nil
			})
		}()
	}
	for range callers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// playMainThread makes launchers where their goroutines run on the main
// thread, unless they leave it: with GOMAXPROCS 1 and nothing else to run, a
// new goroutine runs on the thread of the one that waits for it.
func playMainThread() error {
	allowed, err := Allowed()
	if err != nil {
		return err
	}
	main := func() bool { return syscall.Gettid() == os.Getpid() }
	fmt.Println("main:", main())
	here := make(chan bool)
	go func() { here <- main() }()
	fmt.Println("goroutine:", <-here)
	l := NewLauncher()
	defer l.Close()
	return l.Do(Placement{CPUs: allowed}, func() error {
		fmt.Println("launcher:", main())
		return nil
	})
}

// Allowed, which other goroutines may call at any time, is the main thread's
// mask.
func TestLauncherIsNotOnTheMainThread(t *testing.T) {
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	got, err := process{
		role: "main-thread", args: []string{allowed.String()}, env: []string{"GOMAXPROCS=1"},
	}.run(t)
	if err != nil {
		t.Fatal(err, got)
	}
	if l := got["launcher"]; len(l) != 1 || l[0] != "false" {
		t.Errorf("on the main thread: main %v, another goroutine %v, the launcher %v, want false",
			got["main"], got["goroutine"], l)
	}
	t.Logf("on the main thread: main %v, another goroutine %v", got["main"], got["goroutine"])
}

// The kernel ignores CPUs it does not have, and those outside the cpuset.
func TestPlaceReadsTheMaskBack(t *testing.T) {
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	err = onThread(func() error {
		_, err := place(Placement{CPUs: allowed.Union(SetOf(4096))})
		var wrong *MaskError
		if !errors.As(err, &wrong) || !wrong.Got.Equal(allowed) {
			return fmt.Errorf("got %w, want a MaskError with %v", err, allowed)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A thread that failed half-way has what it had.
func TestPlaceRestoresOnErrors(t *testing.T) {
	cpu, _ := twoCPUs(t)
	node := memoryNode(t)
	err := onThread(func() error {
		before, err := threadMask(0)
		if err != nil {
			return err
		}
		if _, err := place(Placement{CPUs: set(t, cpu), Memory: SetOf(1023)}); err == nil {
			return errors.New("node 1023 is no error")
		}
		if mask, err := threadMask(0); err != nil || !mask.Equal(before) {
			return fmt.Errorf("mask %v, %w, was %v", mask, err, before)
		}
		restore, err := place(Placement{CPUs: set(t, cpu), Memory: set(t, node)})
		if err != nil {
			return err
		}
		if p, err := threadPolicy(); err != nil || !p.prefers(set(t, node)) {
			return fmt.Errorf("policy %v, %w", p, err)
		}
		if err := restore(); err != nil {
			return err
		}
		mask, errMask := threadMask(0)
		policy, errPolicy := threadPolicy()
		if errMask != nil || errPolicy != nil || !mask.Equal(before) || policy.mode != 0 {
			return fmt.Errorf("mask %v, %w, policy %v, %w; was %v and the default", mask, errMask, policy, errPolicy, before)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
