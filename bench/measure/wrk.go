package measure

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"pinion/affinity"
	"pinion/bench/record"
)

// Wrk is a closed loop: each connection sends its next request when the last one is
// answered.
type Wrk struct {
	CPUs    affinity.Set
	Conns   int
	Seconds int // wrk takes whole ones
	URL     string
	Method  string // empty: GET
	Body    string // application/json
	// Pipeline is how many requests are sent in one write; 0 and 1: one.
	Pipeline int
	// PerConnection is after how many requests a connection asks for its end; 0: never.
	PerConnection int
}

// Loaded is what a generator saw.
type Loaded struct {
	Requests int64
	Seconds  float64
	Bytes    int64           // of all answers, heads and bodies
	CPU      time.Duration   // of the generator
	Latency  *record.Latency // nil where wrk cannot know
	Errors   record.Errors
}

// ErrBytes is that of answers which are not as long as they should be.
var ErrBytes = errors.New("answers of another length")

// Answered returns an ErrBytes if answers were not size bytes long on average. Those that
// say that their connection ends may be a little longer, or shorter where others say that
// it stays. wrk looks at no more of an answer than its status, so this is how a server is
// caught that measures well by answering less.
func (l *Loaded) Answered(size int) error {
	const (
		longer  = len("Connection: close\r\n")
		shorter = len("keep-alive") - len("close")
	)
	got := float64(l.Bytes) / float64(l.Requests)
	if low, high := 0.99*float64(size-shorter), 1.01*float64(size+longer); l.Requests > 0 && (got < low || got > high) {
		return fmt.Errorf("%w: %.1f bytes on average, want %d", ErrBytes, got, size)
	}
	return nil
}

// PerSecond returns the requests answered a second.
func (l *Loaded) PerSecond() float64 { return float64(l.Requests) / l.Seconds }

// Run runs wrk to its end. Its files are in dir.
func (w *Wrk) Run(ctx context.Context, dir string) (*Loaded, error) {
	script := filepath.Join(dir, "wrk.lua")
	if err := os.WriteFile(script, []byte(w.script()), 0o600); err != nil {
		return nil, fmt.Errorf("wrk: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(w.Seconds)*time.Second+30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "taskset", "-c", w.CPUs.String(), "wrk",
		"-t", strconv.Itoa(w.threads()), "-c", strconv.Itoa(w.Conns), "-d", strconv.Itoa(w.Seconds)+"s",
		"--timeout", "10s", "-s", script, w.URL)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("wrk: %w: %s", cmp.Or(ctx.Err(), err), bytes.TrimSpace(out))
	}
	l, err := parseWrk(string(out))
	if err != nil {
		return nil, err
	}
	if w.Pipeline > 1 {
		// It takes the rate of answers for that of the writes, and fills in what it thinks
		// it has missed: 15 of 16 are invented.
		l.Latency = nil
	}
	l.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return l, nil
}

// threads is as many as there are CPUs for, or fewer: all must have the same number of
// connections, wrk drops the rest.
func (w *Wrk) threads() int {
	for n := min(w.CPUs.Len(), w.Conns); n > 1; n-- {
		if w.Conns%n == 0 {
			return n
		}
	}
	return 1
}

// mark starts the line with the figures in wrk's output.
const mark = "figures "

// script writes what wrk is to send, and how it says what came of it. wrk calls a Lua
// function for each request only where there is one, so the ordinary case has none.
func (w *Wrk) script() string {
	var b strings.Builder
	if w.Method != "" {
		fmt.Fprintf(&b, "wrk.method = %q\n", w.Method)
	}
	if w.Body != "" {
		fmt.Fprintf(&b, "wrk.body = [==[%s]==]\nwrk.headers[\"Content-Type\"] = \"application/json\"\n", w.Body)
	}
	switch {
	case w.Pipeline > 1:
		fmt.Fprintf(&b, `local all
init = function(args)
	local some = {}
	for i = 1, %d do some[i] = wrk.format() end
	all = table.concat(some)
end
request = function() return all end
`, w.Pipeline)
	case w.PerConnection == 1:
		b.WriteString("wrk.headers[\"Connection\"] = \"close\"\n")
	case w.PerConnection > 1:
		fmt.Fprintf(&b, `local n, keep, last = 0
init = function(args)
	keep = wrk.format()
	last = wrk.format(nil, nil, { Connection = "close" })
end
request = function()
	n = n + 1
	if n %% %d == 0 then return last end
	return keep
end
`, w.PerConnection)
	}
	fmt.Fprintf(&b, `done = function(summary, latency, requests)
	local e = summary.errors
	io.write(string.format('%s{"requests":%%d,"us":%%d,"bytes":%%d,"p50":%%d,"p90":%%d,"p99":%%d,"max":%%d,"connect":%%d,"read":%%d,"write":%%d,"status":%%d,"timeout":%%d}\n',
		summary.requests, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(90), latency:percentile(99), latency.max,
		e.connect, e.read, e.write, e.status, e.timeout))
end
`, mark)
	return b.String()
}

// parseWrk reads the line that script has wrk print.
func parseWrk(out string) (*Loaded, error) {
	_, line, found := strings.Cut(out, mark)
	if !found {
		return nil, fmt.Errorf("wrk: no figures in %q", out)
	}
	line, _, _ = strings.Cut(line, "\n")
	var f struct {
		Requests, Us, Bytes                   int64
		P50, P90, P99, Max                    float64
		Connect, Read, Write, Status, Timeout int64
	}
	if err := json.Unmarshal([]byte(line), &f); err != nil {
		return nil, fmt.Errorf("wrk: %w: %q", err, line)
	}
	return &Loaded{
		Requests: f.Requests,
		Seconds:  float64(f.Us) / 1e6,
		Bytes:    f.Bytes,
		Latency:  &record.Latency{P50: f.P50, P90: f.P90, P99: f.P99, Max: f.Max},
		Errors:   record.Errors{Connect: f.Connect, Read: f.Read, Write: f.Write, Status: f.Status, Timeout: f.Timeout},
	}, nil
}
