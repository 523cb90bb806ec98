package check

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pinion/bench/peers/work"
)

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
	late      bool   // closes when it is asked to, but not if that is not the first request
	silent    bool   // closes without saying so
	swapped   bool   // answers two pipelined requests the wrong way round
	drops     bool   // forgets what came with another request
	oneRead   bool   // takes what it has read of a body for the whole
	oneHead   bool   // forgets the beginning of a head
	any       bool   // answers every path
	awake     bool   // does not sleep
	alone     bool   // sleeps while others wait to
	single    bool   // has no time for a second connection
	shared    bool   // has one buffer for all answers

	open  atomic.Int64
	sleep sync.Mutex
	mu    sync.Mutex
	last  []byte // answer, of all connections
}

// serve serves until the test ends, and returns where.
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
	if c.open.Add(1) > 1 && c.single {
		return // before it is heard: the client need not wait for what never comes
	}
	defer c.open.Add(-1)
	in := bufio.NewReaderSize(conn, 64<<10)
	var kept []byte
	for answers := 0; ; answers++ {
		if c.oneHead {
			_, _ = in.Peek(1)
			if part, _ := in.Peek(in.Buffered()); !bytes.Contains(part, []byte("\r\n\r\n")) {
				_, _ = in.Discard(len(part))
			}
		}
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
		if c.shared {
			out = c.share(out)
		}
		if _, err := conn.Write(out); err != nil || c.oneAnswer || req.Close && !c.never && (answers == 0 || !c.late) {
			return
		}
		if n := in.Buffered(); c.drops && n > 0 {
			return // as good as forgotten, and nobody has to wait
		}
		if req.Close { // and yet it stays: let the client see that at once
			_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\n"))
			return
		}
	}
}

// share puts an answer where those of all connections are, and takes it from there later.
func (c *cheat) share(out []byte) []byte {
	c.mu.Lock()
	c.last = out
	c.mu.Unlock()
	time.Sleep(time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// nap sleeps as is due, or not.
func (c *cheat) nap() {
	if c.awake {
		return
	}
	if c.alone {
		c.sleep.Lock()
		defer c.sleep.Unlock()
	}
	time.Sleep(work.Nap)
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
	if e.Route == work.RouteSleep {
		c.nap()
	}
	if c.body != nil && e.Route != "" {
		right = c.body(&e, right)
	}
	return append([]byte(c.head(status, right, req.Close)), right...)
}

// head returns that of an answer.
func (c *cheat) head(status string, body []byte, last bool) string {
	var b strings.Builder
	b.WriteString("HTTP/1.1 " + status + "\r\n")
	for _, line := range []string{
		"Date: " + time.Now().UTC().Format(http.TimeFormat),
		"Content-Type: application/json",
		"Content-Length: " + strconv.Itoa(len(body)),
	} {
		if c.field != nil {
			line = c.field(line)
		}
		if line != "" {
			b.WriteString(line + "\r\n")
		}
	}
	if last && !c.silent {
		b.WriteString("Connection: close\r\n")
	}
	return b.String() + c.extra + "\r\n"
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

// posted returns the exchange with a purchase, whatever its number.
func posted(body []byte) (work.Exchange, error) {
	var p work.Purchase
	if err := json.Unmarshal(body, &p); err != nil {
		return work.Exchange{}, err
	}
	return work.NewPost(p.Order)
}
