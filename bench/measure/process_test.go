package measure

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"pinion/affinity"
)

// role is the variable that makes the test binary a server at that address. With
// "parent:" before it, the server is a child of the process that is started.
const role = "MEASURE_TEST_SERVER"

func TestMain(m *testing.M) {
	addr, child := strings.CutPrefix(os.Getenv(role), "parent:")
	if child {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), role+"="+addr)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Run(); err != nil {
			os.Exit(3)
		}
		return
	}
	if addr == "" {
		os.Exit(m.Run())
	}
	if err := fasthttp.ListenAndServe(addr, answer); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

func answer(ctx *fasthttp.RequestCtx) {
	switch string(ctx.Path()) {
	case "/burn": // CPU time, so much and no less
		for start := time.Now(); time.Since(start) < 200*time.Millisecond; {
		}
	case "/no":
		ctx.Error("no", fasthttp.StatusServiceUnavailable)
	}
}

// start starts the test binary as a server.
func start(t *testing.T, prefix string) *Process {
	t.Helper()
	addr, err := FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := affinity.Allowed()
	if err != nil {
		t.Fatal(err)
	}
	first, _ := allowed.Min()
	p, err := Start(t.Context(), Config{
		Name: "test", Command: []string{"env", role + "=" + prefix + addr, os.Args[0]},
		Addr: addr, CPUs: affinity.SetOf(first), Log: filepath.Join(t.TempDir(), "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case <-p.done:
		default:
			_ = p.Stop()
		}
	})
	return p
}

func send(t *testing.T, p *Process, target string) {
	t.Helper()
	c, err := Dial(p.Addr, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if o, err := c.Send(t.Context(), [][]byte{Request("GET", target, "")}, 0); err != nil || o.Failed > 0 {
		t.Fatalf("%v, %d failed", err, o.Failed)
	}
}

// TestCPU has the server itself, or a child of it, take CPU time.
func TestCPU(t *testing.T) {
	for _, prefix := range []string{"", "parent:"} {
		p := start(t, prefix)
		before, err := p.CPU()
		if err != nil {
			t.Fatal(err)
		}
		send(t, p, "/burn")
		after, err := p.CPU()
		if err != nil {
			t.Fatal(err)
		}
		// Others may have had the CPU for some of the 200 ms.
		if took := after - before; took < 20*time.Millisecond {
			t.Errorf("%q: %v of CPU time", prefix, took)
		}
		rss, err := p.RSS()
		if err != nil || rss < 1<<20 {
			t.Errorf("%q: %d bytes, %v", prefix, rss, err)
		}
		if n := len(p.tree()); n != 1+len(prefix)/len("parent:") {
			t.Errorf("%q: %d processes", prefix, n)
		}
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		for end := time.Now().Add(patience); err == nil; {
			if _, err = Dial(p.Addr, 1); time.Now().After(end) {
				t.Fatalf("%q: it still listens", prefix)
			}
		}
	}
}

func TestEndsByItself(t *testing.T) {
	addr, err := FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Name: "gone", Addr: addr, Log: filepath.Join(t.TempDir(), "log")}
	cfg.Command = []string{"sh", "-c", "echo no such thing; exit 7"}
	_, err = Start(t.Context(), cfg)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("got %v", err)
	}
	cfg.Command = []string{"true"}
	if _, err = Start(t.Context(), cfg); !errors.Is(err, ErrExit) || strings.Count(err.Error(), "gone") != 1 {
		t.Errorf("got %v", err)
	}
	p := start(t, "")
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.done
	if err := p.Stop(); !errors.As(err, &exit) {
		t.Errorf("a server that died: %v", err)
	}
	if _, err := p.CPU(); err == nil {
		t.Error("CPU time of a server that is gone")
	}
}

func TestFreeAddrs(t *testing.T) {
	addrs, err := FreeAddrs(100)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(addrs)
	if n := len(slices.Compact(addrs)); n != 100 {
		t.Errorf("%d of 100 are different", n)
	}
}
