//go:build linux && numa

package guest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// get asks the private port.
func get(t *testing.T, path string) (int, string) {
	t.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(private + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// status is the status of an answer, 0 if there is none.
func status(url string) int {
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// client is one connection to the public port.
type client struct {
	conn net.Conn
	in   *bufio.Reader
}

// dialFrom connects from a CPU: over loopback, the CPU that sends a packet is the
// one that takes it.
func dialFrom(t *testing.T, cpu int) *client {
	t.Helper()
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		var mask unix.CPUSet
		mask.Set(cpu)
		if err := unix.SchedSetaffinity(0, &mask); err != nil {
			done <- result{err: err}
			return
		}
		conn, err := net.DialTimeout("tcp4", public, patience)
		done <- result{conn, err}
	}()
	r := <-done
	if r.err != nil {
		t.Fatalf("connect from CPU %d: %v", cpu, r.err)
	}
	t.Cleanup(func() { _ = r.conn.Close() })
	return &client{r.conn, bufio.NewReader(r.conn)}
}

// do sends one request and returns status and body. The connection stays open.
func (c *client) do(method, path, body string) (int, string, error) {
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, "", err
	}
	_, err := fmt.Fprintf(c.conn, "%s %s HTTP/1.1\r\nHost: pinion\r\nAuthorization: Bearer token123\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, path, len(body), body)
	if err != nil {
		return 0, "", err
	}
	return c.receive()
}

// receive reads one answer.
func (c *client) receive() (int, string, error) {
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// openPOST connects from a CPU and sends half of a request that makes a user. It returns
// when the server has said that it wants the rest, with what sends that.
func openPOST(t *testing.T, cpu int) (finish func()) {
	t.Helper()
	c := dialFrom(t, cpu)
	if err := c.conn.SetDeadline(time.Now().Add(2 * patience)); err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"name":"Open","email":"cpu%d@example.com"}`, cpu)
	_, err := fmt.Fprintf(c.conn, "POST /api/users HTTP/1.1\r\nHost: pinion\r\nAuthorization: Bearer token123\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n%s", len(body), body[:len(body)/2])
	if err != nil {
		t.Fatal(err)
	}
	const goOn = "HTTP/1.1 100 Continue\r\n\r\n"
	got := make([]byte, len(goOn))
	if _, err := io.ReadFull(c.in, got); err != nil || string(got) != goOn {
		t.Fatalf("half of a POST got %q, %v", got, err)
	}
	return func() {
		t.Helper()
		if _, err := io.WriteString(c.conn, body[len(body)/2:]); err != nil {
			t.Fatal(err)
		}
		code, text, err := c.receive()
		if err != nil || code != 201 {
			t.Fatalf("a POST from CPU %d that was open at the signal: %d %s, %v", cpu, code, text, err)
		}
		t.Logf("a POST from CPU %d that was open at the signal was answered with %d", cpu, code)
	}
}

// ask wants an answer of status 200 to a GET, and returns its body.
func (c *client) ask(t *testing.T, path string) string {
	t.Helper()
	code, body, err := c.do("GET", path, "")
	if err != nil || code != 200 {
		t.Fatalf("GET %s: %d %s, %v", path, code, body, err)
	}
	return body
}

// sample is one value of /metrics.
type sample struct {
	name   string
	labels map[string]string
	value  float64
}

// metrics scrapes the private port.
func metrics(t *testing.T) []sample {
	t.Helper()
	code, text := get(t, "/metrics")
	if code != 200 {
		t.Fatalf("/metrics: %d %s", code, text)
	}
	line := regexp.MustCompile(`^(\w+)(?:\{(.*)\})? (\S+)$`)
	label := regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
	var all []sample
	for l := range strings.Lines(text) {
		m := line.FindStringSubmatch(strings.TrimSpace(l))
		if m == nil || strings.HasPrefix(l, "#") {
			continue
		}
		value, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		s := sample{name: m[1], labels: make(map[string]string), value: value}
		for _, pair := range label.FindAllStringSubmatch(m[2], -1) {
			s.labels[pair[1]] = pair[2]
		}
		all = append(all, s)
	}
	return all
}

// loop is a loop of a cell. A process that is all there is counts as cell 0.
type loop struct{ cell, loop int }

// requests are the requests that each loop has taken so far.
func requests(t *testing.T) map[loop]int {
	t.Helper()
	taken := make(map[loop]int)
	for _, s := range metrics(t) {
		if s.name == "engine_requests_total" {
			taken[loop{number(t, s, "cell"), number(t, s, "loop")}] += int(s.value)
		}
	}
	return taken
}

// number is a label's value, 0 if it is not there.
func number(t *testing.T, s sample, label string) int {
	t.Helper()
	text, given := s.labels[label]
	if !given {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%v: label %s: %v", s, label, err)
	}
	return n
}
