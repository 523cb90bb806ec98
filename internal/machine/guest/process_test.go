//go:build linux && numa

package guest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds each wait. It is never used up when a test passes, and long
// because an emulated CPU is slow.
const patience = 40 * time.Second

// The addresses of the server under test; the machine is its own.
const (
	public  = "127.0.0.1:8080"
	private = "http://127.0.0.1:6060"
)

// process is a server that was started: a supervisor, or all there is.
type process struct {
	cmd  *exec.Cmd
	log  log
	gone chan struct{} // closed when it has ended
}

// log is what a process and its cells have written to stderr.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// command is the server with args. A file database and some users are there
// unless args say something else.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/server", append([]string{
		"-addr", public, "-admin", strings.TrimPrefix(private, "http://"), "-demo", "100",
	}, args...)...)
	cmd.Dir = t.TempDir() // a tmpfs
	cmd.WaitDelay = patience
	return cmd
}

// start runs the server and waits until all of it is ready.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return launch(t, command(t, args...))
}

func launch(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	if left := servers(t); len(left) > 0 {
		t.Fatalf("processes %v are left over by an earlier test", left)
	}
	p := &process{cmd: cmd, gone: make(chan struct{})}
	cmd.Stderr = &p.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // ProcessState tells it
		close(p.gone)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.gone
		if t.Failed() {
			t.Logf("%v said:\n%s", cmd.Args[1:], &p.log)
		}
		noServers(t)
	})
	p.eventually(t, "the start", func() bool { return status(private+"/ready") == 200 })
	return p
}

// eventually waits until done, unless the process ends.
func (p *process) eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		select {
		case <-p.gone:
			t.Fatalf("%s: the server has ended: %v", what, p.cmd.ProcessState)
		default:
		}
		if time.Now().After(until) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// stop sends a signal that drains while requests are open, and wants them to be
// answered and then everything to end, with status 0.
func (p *process) stop(t *testing.T, sig syscall.Signal) {
	t.Helper()
	cells := len(p.pids(t))
	finish := []func(){openPOST(t, 0), openPOST(t, 4)}
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	const closing = `msg="closing listener"`
	p.eventually(t, closing, func() bool { return p.count(closing) == cells })
	for _, f := range finish {
		f()
	}
	select {
	case <-p.gone:
	case <-time.After(patience):
		t.Fatalf("still there %v after %v", patience, sig)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("after %v: %v", sig, p.cmd.ProcessState)
	}
	if left := servers(t); len(left) > 0 {
		t.Errorf("processes %v have outlived their supervisor", left)
	}
	t.Logf("after %v and these answers everything ended: %v", sig, p.cmd.ProcessState)
}

// find waits for a line of the log, and returns the pattern's submatch in the last
// one there is.
func (p *process) find(t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	var last []string
	p.eventually(t, pattern, func() bool {
		all := re.FindAllStringSubmatch(p.log.String(), -1)
		if len(all) > 0 {
			last = all[len(all)-1]
		}
		return last != nil
	})
	return last[len(last)-1]
}

// count is how many lines of the log match.
func (p *process) count(pattern string) int {
	return len(regexp.MustCompile("(?m)"+pattern).FindAllString(p.log.String(), -1))
}

// pids are the processes that serve, in the order of their cells, and that of the
// only one if there are no cells.
func (p *process) pids(t *testing.T) []int {
	t.Helper()
	all := servers(t)
	if len(all) == 1 {
		return all
	}
	pids := make([]int, len(all)-1)
	for cell := range pids {
		pid, err := strconv.Atoi(p.find(t, fmt.Sprintf(`msg="cell started".* cell=%d .*pid=(\d+)`, cell)))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(all, pid) || pid == p.cmd.Process.Pid {
			t.Fatalf("the log says that cell %d is process %d; the processes are %v, the supervisor %d", cell, pid, all, p.cmd.Process.Pid)
		}
		pids[cell] = pid
	}
	return pids
}

// servers are the ids of all running server processes of the machine.
func servers(t *testing.T) []int {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, link := range links {
		// It fails for a process that has ended, and for threads of the kernel.
		if exe, err := os.Readlink(link); err != nil || exe != "/bin/server" {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// noServers waits until no server process is left.
func noServers(t *testing.T) {
	t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		left := servers(t)
		if len(left) == 0 {
			return
		}
		if time.Now().After(until) {
			t.Errorf("processes %v are left", left)
			for _, pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			return
		}
	}
}

// refused wants a command to end with status 2 after one line, with each of the given
// parts in it, and to have done nothing.
func refused(t *testing.T, cmd *exec.Cmd, parts ...string) {
	t.Helper()
	said := ends(t, cmd, 2, parts...)
	if strings.Count(said, "\n") != 1 {
		t.Errorf("%v: it did more than complain:\n%s", cmd.Args[1:], said)
	}
}

// ends wants a command to end with a status, after one line, besides the log, with each of
// the given parts in it. It returns what the command wrote to stderr.
func ends(t *testing.T, cmd *exec.Cmd, code int, parts ...string) string {
	t.Helper()
	var stderr log
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // ProcessState tells it
	timer.Stop()
	args := cmd.Args[1:]
	if cmd.ProcessState.ExitCode() != code {
		t.Errorf("%v: %v, want exit status %d", args, cmd.ProcessState, code)
	}
	var told []string
	for line := range strings.Lines(stderr.String()) {
		if !strings.HasPrefix(line, "time=") {
			told = append(told, line)
		}
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], "server: ") {
		t.Errorf("%v: want one line, got:\n%s", args, &stderr)
	}
	for _, part := range parts {
		if len(told) > 0 && !strings.Contains(told[0], part) {
			t.Errorf("%v: no %q in:\n%s", args, part, told[0])
		}
	}
	t.Logf("%v: %v: %s", args, cmd.ProcessState, strings.TrimSpace(strings.Join(told, "")))
	noServers(t)
	return stderr.String()
}
