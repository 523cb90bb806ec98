package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// server is one of the two that are measured, running or not.
type server struct {
	name    string
	addr    string
	command []string
	logPath string
	cmd     *exec.Cmd
}

// build compiles both services and says how they are started.
func build(ctx context.Context, t *outsideTest, o options, src *sources) (pinion, plain *server, err error) {
	dir, err := os.MkdirTemp("", "pinion-bench-users-")
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	compile := func(name, module, pkg string) (*server, error) {
		binary := filepath.Join(dir, name)
		cmd := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(o.root, module), "-trimpath", "-ldflags", "-s -w", "-o", binary, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w: %s", name, err, out)
		}
		addr, err := freeAddr()
		if err != nil {
			return nil, err
		}
		s := &server{
			name: name, addr: addr, logPath: filepath.Join(dir, name+".log"),
			command: []string{
				"taskset", "-c", o.server.String(), binary,
				"-addr", addr, "-db", src.sqlURL, "-redis", src.redisURL, "-members", src.membersURL,
			},
		}
		t.Cleanup(func() { _ = s.stop() })
		return s, nil
	}
	if pinion, err = compile("pinion", ".", "."); err != nil {
		return nil, nil, err
	}
	pinion.command = append(pinion.command, "-admin", "")
	plain, err = compile("plain", "bench", "./plain")
	return pinion, plain, err
}

func freeAddr() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return ln.Addr().String(), ln.Close()
}

// restart starts the service with nothing in its memory, and waits until it answers.
func (s *server) restart(ctx context.Context) error {
	if err := s.stop(); err != nil {
		return err
	}
	out, err := os.Create(s.logPath)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // the service has its own descriptor
	s.cmd = exec.Command(s.command[0], s.command[1:]...)
	s.cmd.Stdout, s.cmd.Stderr = out, out
	if err := s.cmd.Start(); err != nil {
		return err
	}
	for range 200 {
		if _, err = s.get(ctx, "1"); err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	text, _ := os.ReadFile(s.logPath)
	return fmt.Errorf("%s does not answer: %w: %s", s.name, err, text)
}

// stop ends the service in good order.
func (s *server) stop() error {
	if s.cmd == nil {
		return nil
	}
	cmd := s.cmd
	s.cmd = nil
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	kill := time.AfterFunc(15*time.Second, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s ended: %w", s.name, err)
	}
	return nil
}

// get returns the body of the answer for some ids.
func (s *server) get(ctx context.Context, ids string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/api/users?ids="+ids, nil)
	if err != nil {
		return nil, err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s: %s", resp.Status, body)
	}
	return body, err
}

// cpu returns the user and system time of the whole process so far: what utime and stime
// of proc(5) add up to, but in nanoseconds.
func (s *server) cpu() (time.Duration, error) {
	// The clock of another process, as clock_getcpuclockid(3) makes it: the complement of
	// the id, shifted by three, and 2 for the scheduler's own count.
	clock := int32(^s.cmd.Process.Pid<<3 | 2)
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, fmt.Errorf("CPU time of %s: %w", s.name, err)
	}
	return time.Duration(t.Nano()), nil
}
