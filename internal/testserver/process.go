package testserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// kind is what differs between the servers.
type kind struct {
	name     string
	packages string         // of Debian
	programs []string       // the server first
	places   []string       // where to look for programs beside PATH; may be patterns
	ending   syscall.Signal // ends it in good order although clients are connected
	owned    string         // rest of CREATE DATABASE
	prepare  func(p *process) error
	args     func(p *process) []string
	dsn      func(addr, database string) string
	query    func(ctx context.Context, addr, user, text string) ([]string, error) // nil: no SQL server
	ping     func(ctx context.Context, addr string) error
}

// find looks for the programs. The one that is missing is named.
func (k *kind) find() (paths map[string]string, missing string) {
	paths = map[string]string{}
	for _, name := range k.programs {
		candidates := []string{name}
		for _, place := range k.places {
			found, _ := filepath.Glob(filepath.Join(place, name)) // the patterns are our own
			slices.Reverse(found)                                 // the newest version first
			candidates = append(candidates, found...)
		}
		for _, c := range candidates {
			if path, err := exec.LookPath(c); err == nil {
				paths[name] = path
				break
			}
		}
		if paths[name] == "" {
			return nil, name
		}
	}
	return paths, ""
}

// process is a server: its directory, its port, and the processes that run now.
type process struct {
	kind     *kind
	binaries map[string]string
	args     []string
	dir      string
	addr     string

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
}

// newProcess prepares a directory and starts a server on it.
func newProcess(k *kind, binaries map[string]string, args []string) (*process, error) {
	// Not the test's own directory, which only its owner may enter: the server runs as
	// somebody else where the test is root.
	dir, err := os.MkdirTemp("", "pinion-"+k.name+"-")
	if err != nil {
		return nil, err
	}
	p := &process{kind: k, binaries: binaries, args: args, dir: dir}
	if err = giveAway(dir); err == nil && k.prepare != nil {
		err = k.prepare(p)
	}
	if err == nil {
		err = p.startAnywhere()
	}
	if err != nil {
		p.remove()
		return nil, fmt.Errorf("start %s: %w", k.name, err)
	}
	return p, nil
}

// startAnywhere starts the server on a port that nobody uses. Somebody may take it in
// between, so it tries more than once.
func (p *process) startAnywhere() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var errs []error
	for range 3 {
		var err error
		if p.addr, err = freeAddr(); err == nil {
			err = p.start(ctx)
		}
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// freeAddr returns an address below the ports that the kernel hands out to clients. One
// of those could be taken while the server is down, even by the client that dials it.
func freeAddr() (string, error) {
	var err error
	for range 50 {
		var ln net.Listener
		addr := "127.0.0.1:" + strconv.Itoa(15000+rand.IntN(15000))
		if ln, err = net.Listen("tcp", addr); err == nil {
			return addr, ln.Close()
		}
	}
	return "", err
}

func (p *process) port() string {
	_, port, _ := net.SplitHostPort(p.addr) // made by freeAddr
	return port
}

func (p *process) logPath() string { return filepath.Join(p.dir, "log") }

// run runs a program to its end, as the server's user.
func (p *process) run(name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.binaries[name], args...)
	cmd.Dir = p.dir
	cmd.SysProcAttr = attributes()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// start starts the server and waits until it answers.
func (p *process) start(ctx context.Context) error {
	log, err := os.OpenFile(p.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the server has its own descriptor
	cmd := exec.Command(p.binaries[p.kind.programs[0]], slices.Concat(p.kind.args(p), p.args)...)
	cmd.Dir = p.dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes()
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(done)
	}()
	p.mu.Lock()
	p.cmd, p.done = cmd, done
	p.mu.Unlock()
	for {
		if err = p.kind.ping(ctx, p.addr); err == nil {
			return nil
		}
		select {
		case <-done:
			return fmt.Errorf("it ended: %s", p.tail())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("it does not answer: %w: %s", err, p.tail()), p.kill())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *process) current() (*exec.Cmd, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd, p.done
}

func (p *process) running() bool {
	_, done := p.current()
	if done == nil {
		return false
	}
	select {
	case <-done:
		return false
	default:
		return true
	}
}

func (p *process) stop() error {
	cmd, done := p.current()
	if !p.running() {
		return nil
	}
	if err := cmd.Process.Signal(p.kind.ending); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-done:
		return nil
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("%s does not end: %s", p.kind.name, p.tail()), p.kill())
	}
}

func (p *process) kill() error {
	_, done := p.current()
	if !p.running() {
		return nil
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-done
	return nil
}

func (p *process) pause() error  { return p.signal(syscall.SIGSTOP) }
func (p *process) resume() error { return p.signal(syscall.SIGCONT) }

// signal sends sig to the server and its children: Postgres gives each of its own a
// process group. A server that does not run is left alone.
func (p *process) signal(sig syscall.Signal) error {
	cmd, _ := p.current()
	if !p.running() {
		return nil
	}
	pid := cmd.Process.Pid
	if sig != syscall.SIGCONT {
		// A stopped server makes no more children.
		if err := signalOne(pid, syscall.SIGSTOP); err != nil {
			return err
		}
	}
	for _, pid := range append(childrenOf(pid), pid) {
		if err := signalOne(pid, sig); err != nil {
			return err
		}
	}
	return nil
}

// signalOne takes a process that has ended for one that was signalled.
func signalOne(pid int, sig syscall.Signal) error {
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %v to process %d: %w", sig, pid, err)
	}
	return nil
}

// remove ends the server and deletes all it has.
func (p *process) remove() {
	_ = p.kill() // a server that is gone cannot be killed
	_ = os.RemoveAll(p.dir)
}

func (p *process) tail() string {
	const most = 2000
	data, err := os.ReadFile(p.logPath())
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(data[max(0, len(data)-most):]))
}

// giveAway makes a file the server's.
func giveAway(path string) error {
	if os.Getuid() != 0 {
		return nil
	}
	return os.Chown(path, nobody, nobody)
}

// nobody is who the servers run as where the test is root: Postgres and MariaDB refuse
// to run as root.
const nobody = 65534
