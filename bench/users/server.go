package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"pinion/bench/measure"
)

// server is one of the two that are measured, running or not.
type server struct {
	measure.Config
	process *measure.Process // nil: does not run
}

// build compiles both services and says how they are started.
func build(ctx context.Context, c *cleanup, o options, src *sources) (pinion, plain *server, err error) {
	dir, err := os.MkdirTemp("", "pinion-bench-users-")
	if err != nil {
		return nil, nil, err
	}
	c.add(func() { _ = os.RemoveAll(dir) })
	compile := func(name, module, pkg string) (*server, error) {
		binary := filepath.Join(dir, name)
		cmd := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(o.root, module), "-trimpath", "-ldflags", "-s -w", "-o", binary, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w: %s", name, err, out)
		}
		addr, err := measure.FreeAddr()
		if err != nil {
			return nil, err
		}
		s := &server{Config: measure.Config{
			Name: name, Addr: addr, CPUs: o.server, Log: filepath.Join(dir, name+".log"),
			Command: []string{binary, "-addr", addr, "-db", src.sqlURL, "-redis", src.redisURL, "-members", src.membersURL},
		}}
		c.add(func() { _ = s.stop() })
		return s, nil
	}
	if pinion, err = compile("pinion", ".", "."); err != nil {
		return nil, nil, err
	}
	pinion.Command = append(pinion.Command, "-admin", "")
	plain, err = compile("plain", "bench", "./plain")
	return pinion, plain, err
}

// restart starts the service with nothing in its memory, and waits until it answers.
func (s *server) restart(ctx context.Context) error {
	err := s.stop()
	if err == nil {
		s.process, err = measure.Start(ctx, s.Config)
	}
	if err != nil {
		return err
	}
	for range 200 {
		if _, err = s.get(ctx, "1"); err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	text, _ := os.ReadFile(s.Log)
	return fmt.Errorf("%s does not answer: %w: %s", s.Name, err, text)
}

// stop ends the service in good order.
func (s *server) stop() error {
	if s.process == nil {
		return nil
	}
	p := s.process
	s.process = nil
	return p.Stop()
}

// get returns the body of the answer for some ids.
func (s *server) get(ctx context.Context, ids string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr+"/api/users?ids="+ids, nil)
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
