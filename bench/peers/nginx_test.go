package peers

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestNginxKilled ends an nginx of one worker as the kernel does when a run is killed: with
// SIGKILL for the process that was started, and nothing for those it started itself.
func TestNginxKilled(t *testing.T) {
	binary, err := find("nginx")
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal(err)
	} else if err != nil {
		t.Skip(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	p := Peer{Name: "nginx"}
	command, err := p.Command(binary, Options{Addr: addr, Workers: 1, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end := func() {
		if !ended {
			ended = true
			_ = cmd.Process.Kill() // gone by itself: the test fails elsewhere
			_ = cmd.Wait()         // killed
		}
	}
	t.Cleanup(end)
	listens := func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}
	for limit := time.Now().Add(30 * time.Second); !listens(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("nginx does not listen on %s", addr)
		}
	}
	// A worker that is about to be forked would be missed; one that is there is what a
	// master has had time for.
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	end()
	t.Cleanup(func() { // if the test fails
		for pid := range strings.FieldsSeq(string(children)) {
			_ = exec.Command("kill", "-9", pid).Run()
		}
	})
	if listens() {
		t.Errorf("nginx still listens on %s; its children were %q", addr, children)
	}
}

// TestNginxWorkers shows that several workers still have their master.
func TestNginxWorkers(t *testing.T) {
	for workers, want := range map[int]bool{1: true, 2: false} {
		o := Options{Addr: "127.0.0.1:1", Workers: workers, Dir: t.TempDir()}
		path, err := o.configure("nginx.conf")
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nmaster_process off;\n") != want {
			t.Errorf("%d workers: want a line master_process off: %v; got\n%s", workers, want, text)
		}
	}
}
