package measure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pinion/affinity"
)

// patience is how long a server may take to listen, and to end.
const patience = 10 * time.Second

// Process is a server that runs. Its methods are for one goroutine at a time.
type Process struct {
	Name string
	Addr string // where it listens, host:port
	// Admin is where it tells about itself, for a server that does. Set by the caller.
	Admin string

	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when the process has ended
	err  error         // of that; read after done
}

// Config says what to start.
type Config struct {
	Name    string
	Command []string
	Addr    string       // where it will listen, host:port
	CPUs    affinity.Set // of all its threads; empty: those of the caller
	Log     string       // file for its output, which is cut to nothing first
}

// Start starts a server and waits until it accepts connections.
func Start(ctx context.Context, cfg Config) (*Process, error) {
	command := cfg.Command
	if !cfg.CPUs.Empty() {
		command = append([]string{"taskset", "-c", cfg.CPUs.String()}, command...)
	}
	out, err := os.Create(cfg.Log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cfg.Name, err)
	}
	defer out.Close() //nolint:errcheck // the server has its own descriptor
	p := &Process{Name: cfg.Name, Addr: cfg.Addr, log: cfg.Log, done: make(chan struct{})}
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	// A run that is killed leaves no server behind: SIGTERM, which is not for the server's
	// children, so that one who has some can end them. The thread that forks must live on for
	// that, which is what the runtime's idle threads do.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cfg.Name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	if err := p.listening(ctx); err != nil {
		select {
		case <-p.done:
		default:
			_ = p.Stop() // err says more
		}
		return nil, err
	}
	return p, nil
}

// errSelf is of a connection to itself: the kernel may give it the port that it asks for
// while nobody listens there.
var errSelf = errors.New("connected to itself")

// listening waits until the server accepts a connection.
func (p *Process) listening(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var d net.Dialer
	for {
		c, err := d.DialContext(ctx, "tcp", p.Addr)
		if err == nil {
			self := c.LocalAddr().String() == p.Addr
			if err = c.Close(); !self {
				return err
			}
			err = errSelf
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended before it listened on %s: %w%s", p.Name, p.Addr, p.ended(), p.said())
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen on %s: %w: %w%s", p.Name, p.Addr, ctx.Err(), err, p.said())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// ErrExit is that of a server which ended by itself, though with status 0.
var ErrExit = errors.New("exit status 0")

func (p *Process) ended() error {
	if p.err == nil {
		return ErrExit
	}
	return p.err
}

// said returns the end of the server's output, for an error.
func (p *Process) said() string {
	text, err := os.ReadFile(p.log)
	if err != nil || len(text) == 0 {
		return ""
	}
	return "; it said: " + strings.TrimSpace(string(text[max(0, len(text)-1000):]))
}

// PID returns the number of the process that was started.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop ends the server with SIGTERM, and after some time with SIGKILL. It returns an error
// if the server had ended before. How it ends is not the matter of a measurement.
func (p *Process) Stop() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended by itself: %w%s", p.Name, p.ended(), p.said())
	default:
	}
	children := p.tree()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	for _, pid := range children[1:] {
		_ = syscall.Kill(pid, syscall.SIGKILL) // mostly gone with their parent
	}
	return nil
}

// CPU returns the user and system time of all processes of the server so far.
func (p *Process) CPU() (time.Duration, error) {
	var sum time.Duration
	for _, pid := range p.tree() {
		// The clock of another process, as clock_getcpuclockid(3) makes it: the complement of
		// the id, shifted by three, and 2 for the scheduler's own count.
		clock := int32(^pid<<3 | 2)
		var t unix.Timespec
		if err := unix.ClockGettime(clock, &t); err != nil {
			return 0, fmt.Errorf("CPU time of %s: %w%s", p.Name, err, p.said())
		}
		sum += time.Duration(t.Nano())
	}
	return sum, nil
}

// RSS returns the resident memory of all processes of the server, in bytes. What they
// share is counted as often as they are.
func (p *Process) RSS() (int64, error) {
	var sum int64
	for _, pid := range p.tree() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, fmt.Errorf("memory of %s: %w%s", p.Name, err, p.said())
		}
		_, rest, _ := strings.Cut(string(text), "\nVmRSS:")
		fields := strings.Fields(rest)
		if len(fields) < 2 || fields[1] != "kB" {
			return 0, fmt.Errorf("memory of %s: no VmRSS for process %d", p.Name, pid)
		}
		kib, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("memory of %s: %w", p.Name, err)
		}
		sum += kib << 10
	}
	return sum, nil
}

// tree returns the process and all its descendants: nginx answers from children.
func (p *Process) tree() []int {
	pids := []int{p.PID()}
	for i := 0; i < len(pids); i++ {
		tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pids[i])) // gone: no children
		for _, task := range tasks {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pids[i], task.Name()))
			for child := range strings.FieldsSeq(string(text)) {
				if pid, err := strconv.Atoi(child); err == nil {
					pids = append(pids, pid)
				}
			}
		}
	}
	return pids
}

// FreeAddrs returns n different addresses of 127.0.0.1 where nobody listens at the moment.
func FreeAddrs(n int) ([]string, error) {
	var addrs []string
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		// Open until all are there: a port that was given back may come again at once.
		defer ln.Close() //nolint:errcheck // nothing was accepted
		addrs = append(addrs, ln.Addr().String())
	}
	return addrs, nil
}

// FreeAddr returns an address of 127.0.0.1 where nobody listens at the moment.
func FreeAddr() (string, error) {
	addrs, err := FreeAddrs(1)
	if err != nil {
		return "", err
	}
	return addrs[0], nil
}
