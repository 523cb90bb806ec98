package check

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"pinion/bench/measure"
	"pinion/bench/peers"
	"pinion/bench/peers/work"
)

// TestPeers starts every peer and checks it.
func TestPeers(t *testing.T) {
	for _, name := range []string{"gcc", "nginx", "haproxy", "taskset"} {
		_, err := exec.LookPath(name)
		if err != nil {
			_, err = exec.LookPath("/usr/sbin/" + name)
		}
		if err != nil && os.Getenv("CI") != "" {
			t.Fatal(err)
		} else if err != nil {
			t.Skip(err)
		}
	}
	dir := t.TempDir()
	// nginx's workers drop root, and have to get at their files.
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	all := peers.All()
	binaries, err := peers.Build(t.Context(), "../..", dir, all)
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	users := filepath.Join(dir, "users.json")
	for i := range all {
		p := &all[i]
		t.Run(p.Name, func(t *testing.T) {
			b := binaries[p.Name]
			if len(b.SHA256) != 64 || b.Version == "" && p.Name != "floor" {
				t.Errorf("binary %+v", b)
			}
			addr, err := measure.FreeAddr()
			if err != nil {
				t.Fatal(err)
			}
			scratch := filepath.Join(dir, strconv.Itoa(i))
			if err := os.Mkdir(scratch, 0o755); err != nil {
				t.Fatal(err)
			}
			command, err := p.Command(b.Path, peers.Options{Addr: addr, Workers: 1, Users: users, Dir: scratch})
			if err != nil {
				t.Fatal(err)
			}
			s, err := measure.Start(t.Context(), measure.Config{Name: p.Name, Command: command, Addr: addr, Log: filepath.Join(scratch, "log")})
			if err != nil {
				t.Fatal(err)
			}
			if p.Name == "pinion" {
				err = peers.Fixture(t.Context(), addr, users)
			}
			var sizes map[string]int
			if err == nil {
				sizes, err = Check(t.Context(), addr, p, users, seed)
			}
			if stopped := s.Stop(); stopped != nil || err != nil {
				t.Fatal(err, stopped)
			}
			for _, route := range peers.Routes() {
				if p.Has(route) != (sizes[route] > 100) {
					t.Errorf("%s: %d bytes", route, sizes[route])
				}
			}
			t.Logf("%s %.12s: bytes of answers %v", b.Version, b.SHA256, sizes)
		})
	}
}

// store has users as a file.
func store(t *testing.T) (string, *work.Store) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users.json")
	var users []string
	for id := range 100 {
		users = append(users, fmt.Sprintf(`{"id":%d,"name":"n%d","attributes":{"a":"b"},"created_at":"2026-01-02T15:04:05Z"}`, id+1, id))
	}
	if err := os.WriteFile(path, []byte(`{"users":[`+strings.Join(users, ",")+`],"missing":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := work.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, s
}

// cheat is a server that does everything right but for one thing.
type cheat struct {
	body      func(e *work.Exchange, right []byte) []byte
	field     func(line string) string // of an answer's head; empty: left out
	status    string
	extra     string // fields
	oneAnswer bool   // closes after an answer
	never     bool   // closes never
	swapped   bool   // answers two pipelined requests the wrong way round
	drops     bool   // forgets what came with another request
	oneRead   bool   // takes what it has read of a body for the whole
	any       bool   // answers every path
}

func (c *cheat) serve(t *testing.T, users *work.Store) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go c.one(conn, users)
		}
	}()
	return ln.Addr().String()
}

func (c *cheat) one(conn net.Conn, users *work.Store) {
	defer conn.Close() //nolint:errcheck // the test is about the client
	in := bufio.NewReaderSize(conn, 64<<10)
	var kept []byte
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body := make([]byte, max(0, req.ContentLength))
		if c.oneRead {
			n := 0
			if in.Buffered() > 0 {
				n, _ = in.Read(body)
			}
			body = body[:n]
		} else if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		out := append(kept, c.answer(req, body, users)...)
		if c.swapped && in.Buffered() > 0 && kept == nil {
			kept = out
			continue
		} else if kept != nil {
			out = append(c.answer(req, body, users), kept...)
			kept = nil
		}
		if _, err := conn.Write(out); err != nil || c.oneAnswer || req.Close && !c.never {
			return
		}
		if c.drops {
			_, _ = in.Discard(in.Buffered())
		}
	}
}

// answer answers as a peer should, and then spoils it.
func (c *cheat) answer(req *http.Request, body []byte, users *work.Store) []byte {
	e, err := exchange(req, body, users)
	status, right := "200 OK", e.Want
	switch {
	case err != nil:
		status, right = "400 Bad Request", []byte(err.Error())
	case e.Route == "" && !c.any:
		status, right = "404 Not Found", []byte("not found")
	case c.status != "":
		status = c.status
	}
	if c.body != nil && e.Route != "" {
		right = c.body(&e, right)
	}
	var b strings.Builder
	b.WriteString("HTTP/1.1 " + status + "\r\n")
	for _, line := range []string{
		"Date: " + time.Now().UTC().Format(http.TimeFormat),
		"Content-Type: application/json",
		"Content-Length: " + strconv.Itoa(len(right)),
	} {
		if c.field != nil {
			line = c.field(line)
		}
		if line != "" {
			b.WriteString(line + "\r\n")
		}
	}
	b.WriteString(c.extra + "\r\n" + string(right))
	return []byte(b.String())
}

// exchange returns what a request should be answered with.
func exchange(req *http.Request, body []byte, users *work.Store) (work.Exchange, error) {
	switch req.Method + " " + req.URL.Path {
	case "GET /api/ping":
		return work.NewPing(), nil
	case "GET /sleep":
		return work.NewSleep(), nil
	case "GET /json":
		id, err := work.ParseID(req.URL.Query().Get("id"))
		if err != nil {
			return work.Exchange{}, err
		}
		return work.NewJSON(id)
	case "GET /api/users":
		ids, err := work.ParseIDs(nil, req.URL.Query().Get("ids"))
		if err != nil {
			return work.Exchange{}, err
		}
		return work.NewUsers(users, ids)
	case "POST /json":
		return posted(body)
	default:
		return work.Exchange{}, nil
	}
}

// TestCheats has servers that get one thing wrong, each of which must be told apart.
func TestCheats(t *testing.T) {
	path, users := store(t)
	all := &peers.All()[2] // has all routes
	canned := func(route string) func(*work.Exchange, []byte) []byte {
		var first []byte
		return func(e *work.Exchange, right []byte) []byte {
			if e.Route != route {
				return right
			}
			if first == nil {
				first = right
			}
			return first
		}
	}
	replace := func(name, with string) func(string) string {
		return func(line string) string {
			if strings.HasPrefix(line, name+":") {
				return with
			}
			return line
		}
	}
	ago := time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)
	for name, c := range map[string]struct {
		cheat
		route, what string
	}{
		"honest":                 {},
		"a body too short":       {cheat{body: func(*work.Exchange, []byte) []byte { return []byte("{}") }}, "ping", "body"},
		"a line feed more":       {cheat{body: func(_ *work.Exchange, b []byte) []byte { return append(b, '\n') }}, "ping", "body"},
		"the same order":         {cheat{body: canned("json")}, "json", "body"},
		"the same receipt":       {cheat{body: canned("post")}, "post", "body"},
		"the same users":         {cheat{body: canned("users")}, "users", "body"},
		"no Date":                {cheat{field: replace("Date", "")}, "ping", "Date"},
		"an old Date":            {cheat{field: replace("Date", "Date: "+ago)}, "ping", "Date"},
		"a Date of ours":         {cheat{field: replace("Date", "Date: "+time.Now().UTC().Format(time.RFC3339))}, "ping", "Date"},
		"a Date in another zone": {cheat{field: replace("Date", "Date: "+time.Now().UTC().Format(time.RFC1123))}, "ping", "Date"},
		"two Dates":              {cheat{extra: "Date: " + ago + "\r\n"}, "ping", "Date"},
		"text":                   {cheat{field: replace("Content-Type", "Content-Type: text/plain")}, "ping", "Content-Type"},
		"no type":                {cheat{field: replace("Content-Type", "")}, "ping", "Content-Type"},
		"a length too small":     {cheat{field: replace("Content-Length", "Content-Length: 3")}, "ping", "body"},
		"a length too large":     {cheat{field: replace("Content-Length", "Content-Length: 999999"), oneAnswer: true}, "ping", "answer"},
		"no length":              {cheat{field: replace("Content-Length", "")}, "ping", "answer"},
		"204":                    {cheat{status: "204 No Content"}, "ping", "status"},
		"one answer":             {cheat{oneAnswer: true}, "json", "a further request on a connection"},
		"stays open":             {cheat{never: true}, "close", "what follows the answer to a request with Connection: close"},
		"the wrong way round":    {cheat{swapped: true}, "", "answer 1 of 16 to pipelined requests: body"},
		"forgets":                {cheat{drops: true}, "", "answer 2 of 16 to pipelined requests: answer"},
		"half a body":            {cheat{oneRead: true}, "post", "status"},
		"any path":               {cheat{any: true}, "unknown", "status"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Check(t.Context(), c.serve(t, users), all, path, 3)
			if name == "honest" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var wrong *Error
			if !errors.As(err, &wrong) || wrong.What != c.what || c.route != "" && wrong.Route != c.route {
				t.Errorf("got %v, want route %q, %q", err, c.route, c.what)
			}
		})
	}
}

// posted returns the exchange with a purchase, whatever its number.
func posted(body []byte) (work.Exchange, error) {
	var p work.Purchase
	if err := json.Unmarshal(body, &p); err != nil {
		return work.Exchange{}, err
	}
	return work.NewPost(p.Order)
}
