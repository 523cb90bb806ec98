//go:build linux && numa

package guest

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// killedCell kills a cell as the kernel would when memory is short, and wants another
// one in its place that answers what waited for it.
func killedCell(t *testing.T, p *process, index int) {
	ready := fmt.Sprintf(`msg="cell ready".* cell=%d\b`, index)
	ended := fmt.Sprintf(`msg="cell ended".* cell=%d .*status="signal: killed".* restart_in=100ms`, index)
	old := p.pids(t)
	before := p.count(ready)
	if err := syscall.Kill(old[index], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.find(t, ended)
	// Steered to the cell that is not there: it must wait, not fail.
	waiting := dialFrom(t, 4*index)
	dialFrom(t, 4*(1-index)).ask(t, "/api/users/1")
	waiting.ask(t, "/api/users/1")
	p.eventually(t, ready, func() bool { return p.count(ready) == before+1 })
	p.eventually(t, "/ready", func() bool { return status(private+"/ready") == 200 })
	now := p.pids(t)
	if now[index] == old[index] || now[1-index] != old[1-index] {
		t.Errorf("processes %v, and %v after the end of cell %d", old, now, index)
	}
	t.Logf("cell %d was killed, and is process %d after %d; a connection made meanwhile waited for it; cell %d is process %d still",
		index, now[index], old[index], 1-index, now[1-index])
}

// TestKilledSupervisor: without it there is nobody to hear of a write, so its cells
// must not outlive it.
func TestKilledSupervisor(t *testing.T) {
	p := start(t)
	all := servers(t)
	if len(all) != 3 {
		t.Fatalf("%d processes, want a supervisor and two cells", len(all))
	}
	// One that is stopped cannot see it and end by itself.
	if err := syscall.Kill(p.pids(t)[1], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.gone
	noServers(t)
	t.Logf("supervisor %d was killed, cell 1 being stopped; none is left of processes %v", p.cmd.Process.Pid, all)
}

// TestFailedStart: what keeps one cell from starting keeps all, and is told in one
// line.
func TestFailedStart(t *testing.T) {
	ends(t, command(t, "-db", "sqlite:/proc/nowhere/x.db"), 1, "/proc/nowhere/x.db")
}

// stoppedCell holds a cell up, which is not dead but does not answer.
func stoppedCell(t *testing.T, p *process) {
	pid := p.pids(t)[1]
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/health", "/ready"} {
		code, body := get(t, path)
		if code != 503 || !strings.Contains(body, "cell 1") {
			t.Errorf("%s with cell 1 stopped: %d %s", path, code, body)
		}
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/health", "/ready"} {
		p.eventually(t, path, func() bool { return status(private+path) == 200 })
	}
	if !slices.Contains(servers(t), pid) {
		t.Errorf("cell 1 was ended for being slow")
	}
	t.Logf("cell 1, process %d, was stopped: 503; it went on: 200", pid)
}

// privatePort asks the one private port of all cells.
func privatePort(t *testing.T) {
	for _, path := range []string{"/health", "/ready"} {
		if code, body := get(t, path); code != 200 {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	seen := make(map[string]bool)
	for _, s := range metrics(t) {
		if s.name == "build_info" {
			seen[s.labels["cell"]] = true
		}
	}
	for _, who := range []string{"0", "1", "supervisor"} {
		if !seen[who] {
			t.Errorf("no build_info of %s on /metrics", who)
		}
	}
	if code, body := get(t, "/debug/pprof/cmdline?cell=1"); code != 200 || !strings.HasPrefix(body, "/bin/server\x00") {
		t.Errorf("command line of cell 1: %d %q", code, body)
	}
	// A command line is the same for all; what runs is not.
	const dump = "/debug/pprof/goroutine?debug=1"
	for query, loops := range map[string]bool{"": false, "&cell=0": true, "&cell=1": true} {
		code, body := get(t, dump+query)
		if code != 200 || strings.Contains(body, "pinion/engine.") != loops {
			t.Errorf("%s: status %d, loops in it: %v, want %v", dump+query, code, !loops, loops)
		}
	}
	if code, body := get(t, dump+"&cell=2"); code < 400 {
		t.Errorf("a cell that is not there: %d %s", code, body)
	}
}
