package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"pinion/internal/health"
	"pinion/internal/stats"
)

func TestFleetReady(t *testing.T) {
	c := newCrew(t)
	states := []*health.State{health.New(health.Config{}), health.New(health.Config{})}
	for _, st := range states {
		c.real(Config{Ready: st.Check})
		st.SetReady()
	}
	third := c.fake(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	own := errors.New("supervisor is starting")
	client := c.supervise(Config{Ready: func(context.Context) error { return own }})
	check := func(status int, reason string) {
		t.Helper()
		want := fmt.Sprintf(`{"status":"unavailable","reason":%q}`+"\n", reason)
		if status == http.StatusOK {
			want = `{"status":"ok"}` + "\n"
		}
		if resp, body := get(t, client, base+"/ready"); resp.StatusCode != status || body != want {
			t.Errorf("/ready: %d %q, want %d %q", resp.StatusCode, body, status, want)
		}
	}
	check(503, "supervisor is starting")
	own = nil
	check(503, "cell 2: status 418")
	c.set(third, StateStarting, 1002)
	check(503, "cell 2: starting")
	c.set(1, "restarting", 0)
	check(503, "cell 1: restarting")
	c.set(1, StateDraining, 1001)
	check(503, "cell 1: draining")

	c.mu.Lock()
	c.cells = c.cells[:2]
	c.mu.Unlock()
	c.set(1, StateReady, 1001)
	check(200, "")
	states[1].SetDraining() // the cell knows first
	check(503, "cell 1: draining")
	states[0].SetDraining()
	check(503, "cell 0: draining")

	c.mu.Lock()
	c.cells = nil
	c.mu.Unlock()
	check(503, "there are no cells")
}

func TestFleetHealth(t *testing.T) {
	for name, tc := range map[string]struct {
		state string
		bad   func(c *crew) // adds cell 1
		want  string        // the reason of a 503; "": 200
	}{
		"hangs":             {StateReady, func(c *crew) { c.fake(hang) }, "cell 1: no answer in time"},
		"hangs, draining":   {StateDraining, func(c *crew) { c.fake(hang) }, "cell 1: no answer in time"},
		"hangs, starting":   {StateStarting, func(c *crew) { c.fake(hang) }, ""},
		"fails":             {StateReady, func(c *crew) { c.fake(http.NotFound) }, "cell 1: status 404"},
		"gone":              {StateReady, func(c *crew) { c.add(nil) }, "cell 1: the cell has no process"},
		"restarting":        {"restarting", func(c *crew) { c.add(nil) }, ""},
		"answers":           {StateReady, func(c *crew) { c.real(Config{}) }, ""},
		"answers, draining": {StateDraining, func(c *crew) { c.real(Config{}) }, ""},
		"not ready": {StateReady, func(c *crew) {
			c.real(Config{Ready: func(context.Context) error { return errors.New("starting") }})
		}, ""},
		"ends meanwhile": {StateReady, func(c *crew) {
			c.fake(func(w http.ResponseWriter, r *http.Request) {
				c.set(1, StateStarting, 2001) // there is another already
				http.NotFound(w, r)
			})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // some wait for the timeout
			c := newCrew(t)
			c.real(Config{})
			tc.bad(c)
			c.set(1, tc.state, 1001)
			client := c.supervise(Config{})
			resp, body := get(t, client, base+"/health")
			switch {
			case tc.want == "" && (resp.StatusCode != http.StatusOK || body != `{"status":"ok"}`+"\n"):
				t.Errorf("%d %s", resp.StatusCode, body)
			case tc.want != "" && (resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, fmt.Sprintf(`"reason":%q`, tc.want))):
				t.Errorf("%d %s, want %q", resp.StatusCode, body, tc.want)
			}
		})
	}
}

// echo answers with what reached it.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, _ = fmt.Fprintf(w, "cell got %s %s %s", r.Method, r.URL.RequestURI(), body)
}

func TestProxy(t *testing.T) {
	c := newCrew(t)
	c.real(Config{Version: "v-of-cell-0", Stats: stats.NewRegistry(1), Ready: func(context.Context) error { return errors.New("not yet") }})
	c.fake(echo)
	c.add(nil)
	c.set(2, "restarting", 0)
	c.add(nil) // said to be ready
	client := c.supervise(Config{Version: "v-of-supervisor"})
	for path, want := range map[string]struct {
		status int
		body   string // a part of it
	}{
		"/ready?cell=0":                            {503, `"reason":"not yet"`},
		"/health?cell=0":                           {200, `{"status":"ok"}`},
		"/metrics?cell=0":                          {200, `version="v-of-cell-0"`},
		"/?cell=0":                                 {200, "pinion, private port\n"},
		"/nothing?cell=0":                          {404, "404"},
		"/debug/pprof/goroutine?debug=1&cell=0":    {200, "goroutine profile"},
		"/debug/pprof/cmdline?cell=0":              {200, "admin.test"},
		"/debug/pprof/nothing?cell=0":              {404, "Unknown profile"},
		"/debug/pprof/heap?gc=1&cell=1&x=a%26b%3D": {200, "cell got GET /debug/pprof/heap?gc=1&x=a%26b%3D "},
		"/any/%2F/where?cell=1":                    {200, "cell got GET /any/%2F/where "},
		"/metrics?cell=2":                          {503, "cell 2: restarting\n"},
		"/metrics?cell=3":                          {502, "cell 3: the cell has no process\n"},
		"/metrics?cell=9":                          {404, "there is no cell 9; there are 0, 1, 2, 3\n"},
		"/debug/pprof/heap?cell=-1":                {404, "there is no cell -1; "},
		"/metrics?cell=x":                          {400, `got "x"; there are 0, 1, 2, 3` + "\n"},
		"/metrics?cell=":                           {400, `got ""; `},
		"/metrics?cell=99999999999999999999":       {400, `got "99999999999999999999"; `},
		"/debug/pprof/goroutine?debug=1":           {200, "goroutine profile"},
		"/metrics":                                 {200, `version="v-of-supervisor"`},
	} {
		resp, body := get(t, client, base+path)
		if resp.StatusCode != want.status || !strings.Contains(body, want.body) {
			t.Errorf("%s: %d %q, want %d %q", path, resp.StatusCode, body, want.status, want.body)
		}
	}
	resp, err := client.Post(base+"/debug/pprof/symbol?cell=1", "text/plain", strings.NewReader("0x1234"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || string(body) != "cell got POST /debug/pprof/symbol 0x1234" {
		t.Errorf("POST: %q, %v", body, err)
	}
}

// TestProxiedProfile shortens the write timeouts instead of waiting for 30 s.
func TestProxiedProfile(t *testing.T) {
	short := func(s *Server) { s.http.WriteTimeout = 300 * time.Millisecond }
	c := newCrew(t)
	cell := c.real(Config{}, short)
	client := c.supervise(Config{}, short)
	for _, path := range []string{"profile?seconds=1", "trace?seconds=1", "mutex?seconds=1"} {
		resp, body := get(t, client, fmt.Sprintf("%s/debug/pprof/%s&cell=%d", base, path, cell))
		if resp.StatusCode != http.StatusOK || len(body) < 100 || resp.Header.Get("Content-Type") != "application/octet-stream" {
			t.Errorf("%s: %d, %d bytes, %v", path, resp.StatusCode, len(body), resp.Header)
		}
	}
}

func TestProfileTime(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"profile":               30 * time.Second,
		"profile?seconds=12":    12 * time.Second,
		"profile?seconds=0":     30 * time.Second,
		"profile?seconds=-5":    30 * time.Second,
		"profile?seconds=x":     30 * time.Second,
		"profile?seconds=1e300": maxProfile,
		"profile?seconds=Inf":   maxProfile,
		"trace":                 time.Second,
		"trace?seconds=0.25":    250 * time.Millisecond,
		"trace?seconds=NaN":     time.Second,
		"heap":                  time.Second,
		"heap?seconds=5":        5 * time.Second,
	} {
		r, err := http.NewRequest(http.MethodGet, base+"/debug/pprof/"+query, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if got := profileTime(r); got != want {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
}

// A cell that hangs costs its caller the time that the page may take, and no more.
func TestProxyTimeout(t *testing.T) {
	c := newCrew(t)
	c.fake(hang)
	client := c.supervise(Config{}, func(s *Server) {
		s.fleet.scrapeTimeout = 100 * time.Millisecond
		s.fleet.probeTimeout = 5 * time.Second // what is left to say so
		s.http.WriteTimeout = time.Second
	})
	for _, path := range []string{"/metrics?cell=0", "/debug/pprof/heap?seconds=0.1&cell=0"} {
		resp, body := get(t, client, base+path)
		if resp.StatusCode != http.StatusGatewayTimeout || body != "cell 0: no answer in time\n" {
			t.Errorf("%s: %d %q", path, resp.StatusCode, body)
		}
	}
}

// A caller that leaves frees the cell.
func TestProxyCallerLeaves(t *testing.T) {
	entered, freed := make(chan struct{}), make(chan struct{})
	c := newCrew(t)
	c.fake(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		hang(w, r)
		close(freed)
	})
	client := c.supervise(Config{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-entered
		cancel()
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/debug/pprof/profile?cell=0", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := client.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Error("an answer of a cell that hangs")
	}
	select {
	case <-freed:
	case <-time.After(10 * time.Second):
		t.Error("the cell is still asked")
	}
}

func TestFleetIndex(t *testing.T) {
	c := newCrew(t)
	c.add(nil)
	c.add(nil)
	c.mu.Lock()
	c.cells[1] = CellStatus{Cell: 1, State: "restarting", Restarts: 3, LastExit: "signal: killed"}
	c.mu.Unlock()
	client := c.supervise(Config{})
	_, body := get(t, client, base+"/")
	for _, want := range []string{
		"pinion, private port\n", "cell=0&seconds=10",
		"\ncell  state       pid   restarts  last exit\n",
		"\n0     ready       1000  0         -\n",
		"\n1     restarting  -     3         signal: killed\n",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
}
