package cell

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pinion/affinity"
	"pinion/internal/stats"
)

func kill(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if pid <= 0 {
		t.Fatalf("no process to send %v", sig)
	}
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}

func TestStartOrder(t *testing.T) {
	f := startFleet(t, 3, behaviour{Startup: map[int]time.Duration{0: 200 * time.Millisecond}}, nil)
	first := f.log.index(t, `msg="cell ready" cell=0`)
	if started := f.log.index(t, `msg="cell started" cell=0 pid=`); started > first {
		t.Errorf("cell 0 was ready before it was started:\n%s", f.log)
	}
	for i := 1; i < 3; i++ {
		if at := f.log.index(t, fmt.Sprintf(`msg="cell started" cell=%d`, i)); at < first {
			t.Errorf("cell %d was started before cell 0 was ready:\n%s", i, f.log)
		}
	}
}

func TestCellKnowsItself(t *testing.T) {
	cpus, err := affinity.Allowed()
	if err != nil {
		t.Fatal(err)
	}
	first, _ := cpus.Min()
	one, err := affinity.ParseSet(strconv.Itoa(first))
	if err != nil {
		t.Fatal(err)
	}
	f := startFleet(t, 2, behaviour{}, func(c *Config) { c.Specs[1].Placement.CPUs = one })
	for i, want := range []string{cpus.String(), one.String()} {
		got := f.self(t, i)
		if got.Index != i || got.Of != 2 || got.Share != 0.5 || got.Listeners != 1 {
			t.Errorf("cell %d: %+v", i, got)
		}
		if got.Placement != want || got.Allowed != want {
			t.Errorf("cell %d: told CPUs %s, runs on %s, want %s", i, got.Placement, got.Allowed, want)
		}
		if got.PID != f.Cells()[i].PID || got.Group != got.PID {
			t.Errorf("cell %d: process %d in group %d, want %d in its own", i, got.PID, got.Group, f.Cells()[i].PID)
		}
		if got.Variable != "" {
			t.Errorf("cell %d: %s is still set: %s", i, identityEnv, got.Variable)
		}
		if answer, err := getPublic(f.addrs[i]); err != nil || answer != fmt.Sprint("cell ", i) {
			t.Errorf("%s answers %q, %v", f.addrs[i], answer, err)
		}
	}
}

func TestRestart(t *testing.T) {
	registry := stats.NewRegistry(1)
	f := startFleet(t, 2, behaviour{}, func(c *Config) { c.Stats = registry })
	before := f.Cells()[1].PID
	kill(t, before, syscall.SIGKILL)
	after := f.await(t, "the cell is back", func(all []Status) bool { return all[1].Restarts == 1 && all[1].State == Ready })
	if after[1].PID == before || after[1].LastExit != "signal: killed" {
		t.Errorf("after a restart: %+v, was process %d", after[1], before)
	}
	if after[0].Restarts != 0 {
		t.Errorf("cell 0 was restarted too: %+v", after[0])
	}
	f.log.index(t, `msg="cell ended" cell=1 status="signal: killed" restart_in=100ms`)
	want := map[string]float64{"cell_up 0": 1, "cell_up 1": 1, "cell_restarts_total 0": 0, "cell_restarts_total 1": 1}
	for _, family := range registry.Snapshot() {
		for _, s := range family.Series {
			key := strings.Join(append([]string{family.Name}, s.LabelValues...), " ")
			if v, ok := want[key]; ok && v != s.Value {
				t.Errorf("%s = %v, want %v", key, s.Value, v)
			}
			delete(want, key)
		}
	}
	if err := registry.Err(); err != nil || len(want) > 0 {
		t.Errorf("missing metrics %v, error %v", want, err)
	}
}

func TestEndsByItself(t *testing.T) {
	for name, c := range map[string]struct {
		cells  int
		b      behaviour
		change func(*Config)
		want   error
		text   string
		code   int
	}{
		"cell 0 is never ready": {2, behaviour{Fail: map[int]int{0: 3}}, nil, ErrNeverReady, "cell 0 ended before it was ever ready: exit status 3", 3},
		"cell 1 is never ready": {3, behaviour{Fail: map[int]int{1: 2}}, nil, ErrNeverReady, "cell 1 ended before it was ever ready: exit status 2", 2},
		"never ready, status 0": {1, behaviour{Fail: map[int]int{0: 0}}, nil, ErrNeverReady, "cell 0 ended before it was ever ready: exit status 0", 1},
		"crashes": {
			2,
			behaviour{Crash: map[int]int{1: 7}},
			func(c *Config) { c.Restart = Restart{Min: time.Millisecond, Limit: 2} },
			ErrTooOften, "cell 1 ended too often: exit status 7", 1,
		},
		"no such program": {2, behaviour{}, func(c *Config) { c.Path = "/nonexistent/server" }, os.ErrNotExist, "/nonexistent/server", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := launchFleet(t, c.cells, c.b, c.change)
			err := f.result(t)
			var exit *ExitError
			if !errors.As(err, &exit) || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("Run() = %v, want %q", err, c.text)
			}
			if got := exit.ExitCode(); got != c.code {
				t.Errorf("exit code %d, want %d", got, c.code)
			}
			for _, s := range f.Cells() {
				if s.State != Gone || s.PID != 0 {
					t.Errorf("after Run: %+v", s)
				}
			}
		})
	}
}

func TestDrain(t *testing.T) {
	f := startFleet(t, 2, behaviour{Drain: 300 * time.Millisecond}, nil)
	began := time.Now()
	f.stop()
	f.await(t, "cells drain", func(all []Status) bool { return all[0].State == Draining && all[1].State == Draining })
	// Nothing waits where nobody reads.
	eventually(t, "the listeners are closed", func() bool {
		conn, err := net.Dial("tcp", f.addrs[0])
		if err == nil {
			_ = conn.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	if err := f.result(t); err != nil {
		t.Errorf("Run() = %v", err)
	}
	if d := time.Since(began); d < 300*time.Millisecond {
		t.Errorf("ended after %v, before the cells had drained", d)
	}
}

// TestStopWhileStarting stops cells that have no handler for the signal yet.
func TestStopWhileStarting(t *testing.T) {
	f := launchFleet(t, 2, behaviour{Startup: map[int]time.Duration{0: time.Minute}}, nil)
	f.await(t, "cell 0 is started", func(all []Status) bool { return all[0].PID != 0 })
	f.Stop()
	f.Stop() // the handler may be there already
	if err := f.result(t); err != nil {
		t.Errorf("Run() = %v", err)
	}
	if strings.Contains(f.log.String(), `msg="cell started" cell=1`) {
		t.Errorf("cell 1 was started:\n%s", f.log)
	}
}

// TestStopBetweenForkAndNote stops when a process has been started that the
// supervisor does not know of yet.
func TestStopBetweenForkAndNote(t *testing.T) {
	var f *fleet
	stop := make(chan func(), 1)
	f = launchFleet(t, 1, behaviour{}, func(c *Config) {
		launcher := affinity.NewLauncher()
		t.Cleanup(launcher.Close)
		c.Launch = func(p affinity.Placement, start func() error) error {
			defer func() { (<-stop)() }()
			return launcher.Do(p, start)
		}
	})
	stop <- f.Stop
	if err := f.result(t); err != nil {
		t.Errorf("Run() = %v", err)
	}
}

func TestStopBeforeRun(t *testing.T) {
	f := launchFleet(t, 2, behaviour{}, func(c *Config) {
		c.Launch = func(affinity.Placement, func() error) error { return errors.New("must not be called") }
		c.Specs = c.Specs[:0]
	})
	if err := f.result(t); err != nil {
		t.Errorf("Run() of no cells = %v", err)
	}
	s := New(Config{Specs: []Spec{{}}})
	s.Stop()
	if err := s.Run(t.Context()); err != nil {
		t.Errorf("Run() = %v", err)
	}
	if err := s.Run(t.Context()); err == nil {
		t.Error("a second Run() was let through")
	}
}

func TestSecondStopEndsAtOnce(t *testing.T) {
	f := startFleet(t, 2, behaviour{Drain: time.Minute}, nil)
	f.stop()
	f.await(t, "cells drain", func(all []Status) bool { return all[0].State == Draining && all[1].State == Draining })
	var err error
	eventually(t, "the second signal ends the cells", func() bool {
		f.Stop() // each cell restores the default when it has seen the first
		select {
		case err = <-f.ended:
			return true
		default:
			return false
		}
	})
	var exit *ExitError
	if !errors.As(err, &exit) || exit.Err != nil || exit.Status.String() != "signal: terminated" {
		t.Errorf("Run() = %v", err)
	}
}

func TestDeafCellIsKilled(t *testing.T) {
	f := startFleet(t, 2, behaviour{Deaf: true}, func(c *Config) {
		c.DrainTimeout, c.DrainMargin = 100*time.Millisecond, 100*time.Millisecond
	})
	began := time.Now()
	f.stop()
	err := f.result(t)
	var exit *ExitError
	if !errors.As(err, &exit) || exit.Status.String() != "signal: killed" || exit.ExitCode() != 1 {
		t.Errorf("Run() = %v", err)
	}
	if d := time.Since(began); d < 200*time.Millisecond {
		t.Errorf("killed after %v", d)
	}
}

// TestLingering has a cell give up its control socket and go on, for a while that is
// borne and for one that is not.
func TestLingering(t *testing.T) {
	for _, c := range []struct {
		linger, timeout time.Duration
		want            string
	}{
		{200 * time.Millisecond, patience, "exit status 0"},
		{2 * patience, 100 * time.Millisecond, "signal: killed"},
	} {
		t.Run(c.want, func(t *testing.T) {
			f := startFleet(t, 1, behaviour{Linger: c.linger}, func(cfg *Config) { cfg.RelayTimeout = c.timeout })
			kill(t, f.Cells()[0].PID, syscall.SIGTERM)
			f.await(t, "the cell is back", func(all []Status) bool { return all[0].Restarts == 1 && all[0].State == Ready })
			if last := f.Cells()[0].LastExit; last != c.want {
				t.Errorf("it ended with %q", last)
			}
		})
	}
}

func TestConnectionsWaitForRestart(t *testing.T) {
	f := startFleet(t, 2, behaviour{}, func(c *Config) { c.Restart.Min = 300 * time.Millisecond })
	kill(t, f.Cells()[1].PID, syscall.SIGKILL)
	f.await(t, "the cell is down", func(all []Status) bool { return all[1].State == Restarting })
	answer, err := getPublic(f.addrs[1])
	if err != nil || answer != "cell 1" {
		t.Errorf("a request to a cell that is down: %q, %v", answer, err)
	}
	if f.Cells()[1].Restarts != 1 {
		t.Error("the request was answered by nobody")
	}
}

// TestNoLeaks also has the descriptors of a cell that was restarted counted.
func TestNoLeaks(t *testing.T) {
	const rounds = 30
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would close what is forgotten
	f := startFleet(t, 2, behaviour{}, func(c *Config) { c.Restart = Restart{Min: time.Millisecond, Max: time.Millisecond, Limit: rounds} })
	round := func(i int) {
		kill(t, f.Cells()[1].PID, syscall.SIGKILL)
		f.await(t, "the cell is back", func(all []Status) bool { return all[1].Restarts == i && all[1].State == Ready })
		f.mustAsk(t, 0, "/announce?id=%d", i)
	}
	round(1)
	before, cellBefore := f.self(t, 0).Descriptors, f.self(t, 1).Descriptors
	ours, err := descriptors("self")
	if err != nil {
		t.Fatal(err)
	}
	for i := 2; i <= rounds; i++ {
		round(i)
	}
	// Connections of the last request may still be closing.
	eventually(t, "the supervisor has no more descriptors than before", func() bool {
		n, err := descriptors("self")
		return err == nil && n <= ours
	})
	if n := f.self(t, 0).Descriptors; n > before+2 {
		t.Errorf("cell 0 has %d descriptors, had %d", n, before)
	}
	if n := f.self(t, 1).Descriptors; n > cellBefore+2 {
		t.Errorf("cell 1 has %d descriptors, had %d", n, cellBefore)
	}
}

// TestPollerIgnoresListeners: an epoll instance of the supervisor that has a
// listener in it wakes the supervisor for each connection that the cell gets.
func TestPollerIgnoresListeners(t *testing.T) {
	f := startFleet(t, 1, behaviour{}, nil)
	f.mu.Lock()
	fd := f.cells[0].sockets[0]
	f.mu.Unlock()
	var socket syscall.Stat_t
	if err := syscall.Fstat(fd, &socket); err != nil {
		t.Fatal(err)
	}
	infos, err := filepath.Glob("/proc/self/fdinfo/*")
	if err != nil {
		t.Fatal(err)
	}
	polled, targets := regexp.MustCompile(`(?m)^tfd:.* ino:([0-9a-f]+)`), 0
	for _, info := range infos {
		text, err := os.ReadFile(info)
		if err != nil {
			continue // one that has been closed since
		}
		for _, match := range polled.FindAllStringSubmatch(string(text), -1) {
			targets++
			if ino, err := strconv.ParseUint(match[1], 16, 64); err != nil || ino == socket.Ino {
				t.Errorf("%s has inode %s in it, %v", info, match[1], err)
			}
		}
	}
	if targets == 0 {
		t.Error("no poller was found")
	}
}

func TestSocketFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	f := startFleet(t, 2, behaviour{}, func(c *Config) {
		ln, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Specs { // one listener for all
			_ = c.Specs[i].Listeners[0].Close()
			c.Specs[i].Listeners[0] = ln
		}
	})
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	f.stop()
	if err := f.result(t); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket file after Run: %v", err)
	}
}

// supervisorProcess starts a supervisor of two cells as a process of its own, and
// returns it and its cells' when they are ready, and what it writes then.
func supervisorProcess(t *testing.T, program, mode string) (cmd *exec.Cmd, cells []int, rest *bufio.Scanner) {
	t.Helper()
	cmd = exec.Command(program)
	cmd.Env = append(behaviour{Drain: 100 * time.Millisecond}.environ(), supervisorEnv+"="+mode)
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		late.Stop()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	started := regexp.MustCompile(`msg="cell started" cell=\d pid=(\d+)`)
	rest = bufio.NewScanner(pipe)
	for ready := 0; ready < 2; {
		if !rest.Scan() {
			t.Fatalf("the supervisor ended before its cells were ready: %v", rest.Err())
		}
		if m := started.FindStringSubmatch(rest.Text()); m != nil {
			pid, _ := strconv.Atoi(m[1])
			cells = append(cells, pid)
		}
		if strings.Contains(rest.Text(), `msg="cell ready"`) {
			ready++
		}
	}
	if len(cells) != 2 {
		t.Fatalf("cells %v", cells)
	}
	return cmd, cells, rest
}

func TestKilledSupervisorLeavesNoOrphan(t *testing.T) {
	cmd, cells, _ := supervisorProcess(t, os.Args[0], "1")
	for _, pid := range cells {
		if !alive(pid) {
			t.Fatalf("cell %d does not run", pid)
		}
	}
	kill(t, cells[0], syscall.SIGSTOP) // even one that cannot notice
	kill(t, cmd.Process.Pid, syscall.SIGKILL)
	for _, pid := range cells {
		eventually(t, fmt.Sprintf("cell %d has ended", pid), func() bool { return !alive(pid) })
	}
}

// TestKernelKillsOrphans has the control sockets stay open, so that only the kernel
// can tell the cells.
func TestKernelKillsOrphans(t *testing.T) {
	cmd, cells, rest := supervisorProcess(t, os.Args[0], "held")
	holder := 0
	for holder == 0 && rest.Scan() {
		_, _ = fmt.Sscanf(rest.Text(), "holder pid=%d", &holder) // other lines say something else
	}
	defer kill(t, holder, syscall.SIGKILL)
	kill(t, cmd.Process.Pid, syscall.SIGKILL)
	for _, pid := range cells {
		eventually(t, fmt.Sprintf("cell %d has ended", pid), func() bool { return !alive(pid) })
	}
	if !alive(holder) {
		t.Error("nobody held the sockets")
	}
}

func TestSignalledSupervisor(t *testing.T) {
	cmd, cells, rest := supervisorProcess(t, os.Args[0], "1")
	kill(t, cmd.Process.Pid, syscall.SIGTERM)
	var text strings.Builder
	for rest.Scan() {
		text.WriteString(rest.Text() + "\n")
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v:\n%s", err, &text)
	}
	for i, pid := range cells {
		if alive(pid) {
			t.Errorf("cell %d still runs", i)
		}
		if want := fmt.Sprintf(`msg="cell ended" cell=%d status="exit status 0"`, i); !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}
