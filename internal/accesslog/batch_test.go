package accesslog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"pinion/handlers"
)

// hostile is an entry whose line is as long as a client can make it.
func hostile() *handlers.Entry {
	text := strings.Repeat("\x00", 5000)
	e := entry()
	e.Path, e.Query, e.RequestID, e.Method = []byte(text), []byte(text), []byte(text), text
	e.Remote = &net.UnixAddr{Name: text, Net: "unix"}
	e.Handler, e.Panic = text, true
	return e
}

func TestCell(t *testing.T) {
	for cell, want := range map[*int]string{
		nil:      `"duration_us":45}` + "\n",
		new(0):   `"duration_us":45,"cell":0}` + "\n",
		new(123): `"duration_us":45,"cell":123}` + "\n",
	} {
		var out bytes.Buffer
		f := start(t, Config{Mode: All(), Out: &out, Cell: cell})
		f.Record(0, entry())
		f.close(t)
		if !strings.HasSuffix(out.String(), want) || !json.Valid(out.Bytes()) {
			t.Errorf("%s does not end with %s", out.String(), want)
		}
	}
}

// writes keeps each Write apart.
type writes struct {
	gate *gate // nil: open
	all  [][]byte
}

func (w *writes) Write(p []byte) (int, error) {
	if w.gate != nil {
		_, _ = w.gate.Write(nil)
	}
	w.all = append(w.all, bytes.Clone(p))
	return len(p), nil
}

// TestBatches has all lines in the ring before the first is gathered.
func TestBatches(t *testing.T) {
	for _, tc := range []struct {
		set, limit int
	}{{0, 64 << 10}, {-1, 64 << 10}, {1, 4096}, {4096, 4096}, {10_000, 10_000}} {
		t.Run(fmt.Sprint(tc.set), func(t *testing.T) {
			const lines = 1000
			out := &writes{gate: newGate()}
			f := start(t, Config{Mode: All(), Out: out, BatchBytes: tc.set, Lines: 2048, Cell: new(1023)})
			f.Record(0, entry())
			<-out.gate.entered
			e, long := entry(), hostile()
			for i := range lines {
				if i%50 == 0 {
					f.Record(0, long)
					continue
				}
				e.Path = fmt.Appendf(e.Path[:0], "/%0*d", 1+i%200, i)
				f.Record(0, e)
			}
			close(out.gate.open)
			f.close(t)
			if n := f.count("access_log_dropped_total"); n != 0 {
				t.Errorf("%d dropped", n)
			}
			total, full := 0, 0
			for _, p := range out.all {
				if len(p) > tc.limit {
					t.Errorf("a Write of %d bytes, above %d", len(p), tc.limit)
				}
				// The next line did not fit; the longest takes half of the least batch.
				if len(p) > tc.limit/3 {
					full++
				}
				if p[len(p)-1] != '\n' {
					t.Errorf("a Write ends within a line: %q", p[max(0, len(p)-50):])
				}
				checkLines(t, p)
				total += bytes.Count(p, []byte{'\n'})
			}
			if total != 1+lines {
				t.Errorf("%d lines, want %d", total, 1+lines)
			}
			if most := 2 + len(bytes.Join(out.all, nil))/(tc.limit/3); full == 0 || len(out.all) > most {
				t.Errorf("%d Writes, %d of them full: that is no batching", len(out.all), full)
			}
		})
	}
}

// TestLongestLine: nothing that a client sends makes a line longer than a batch, and the
// short form is for such lines only.
func TestLongestLine(t *testing.T) {
	var out bytes.Buffer
	f := start(t, Config{Mode: All(), Out: &out, BatchBytes: MinBatchBytes, Cell: new(1023)})
	f.Record(0, hostile())
	e := entry()
	e.Path, e.Query = bytes.Repeat([]byte("p"), 5000), bytes.Repeat([]byte("q"), 5000)
	f.Record(0, e)
	f.close(t)
	lines := strings.SplitAfter(out.String(), "\n")
	if len(lines) != 3 || len(lines[0]) > MinBatchBytes || len(lines[1]) > MinBatchBytes {
		t.Fatalf("%d lines: %q", len(lines)-1, out.String())
	}
	for i, want := range []int{shortTextBytes, textBytes} {
		var m struct {
			Path, Query string
			PathLen     int `json:"path_len"`
			QueryLen    int `json:"query_len"`
			Cell        int
		}
		if err := json.Unmarshal([]byte(lines[i]), &m); err != nil {
			t.Fatal(err)
		}
		if len(m.Path) != want || len(m.Query) != want || m.PathLen != 5000 || m.QueryLen != 5000 || m.Cell != 1023 {
			t.Errorf("line %d: %s", i, lines[i])
		}
	}
}

// Environment of a process that is one of several writers: its number.
const writerEnv = "ACCESSLOG_TEST_WRITER"

const linesOfWriter = 4000

// runWriter is the main of such a process. Its standard output is the shared pipe.
func runWriter(number string) int {
	var cell int
	if _, err := fmt.Sscan(number, &cell); err != nil {
		return 2
	}
	l := New(Config{Mode: All(), Lines: 2 * linesOfWriter, BatchBytes: MinBatchBytes, Cell: &cell})
	e, long := entry(), hostile()
	for i := range linesOfWriter {
		if i%20 == 0 {
			l.Record(0, long)
			continue
		}
		e.Path = fmt.Appendf(e.Path[:0], "/%d/%0*d", cell, 1+i%500, i)
		l.Record(0, e)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		return 1
	}
	return 0
}

// TestSharedPipe has three processes write to one pipe that is always full.
func TestSharedPipe(t *testing.T) {
	const writers = 3
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var children []*exec.Cmd
	for i := range writers {
		c := exec.CommandContext(ctx, self)
		c.Env = append(os.Environ(), fmt.Sprint(writerEnv, "=", i))
		c.Stdout, c.Stderr = w, os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, c)
	}
	_ = w.Close()
	// Small reads keep the pipe full, so that a Write that is too large is cut up.
	var out bytes.Buffer
	if _, err := io.CopyBuffer(struct{ io.Writer }{&out}, struct{ io.Reader }{r}, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	for i, c := range children {
		if err := c.Wait(); err != nil {
			t.Errorf("writer %d: %v", i, err)
		}
	}
	var count [writers]int
	for line := range bytes.Lines(out.Bytes()) {
		m := struct{ Cell int }{-1}
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		if m.Cell < 0 || m.Cell >= writers {
			t.Fatalf("cell %d in %s", m.Cell, line)
		}
		count[m.Cell]++
	}
	if want := [writers]int{linesOfWriter, linesOfWriter, linesOfWriter}; count != want {
		t.Errorf("lines of each writer: %v, want %v", count, want)
	}
}
