package check

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pinion/bench/peers"
	"pinion/bench/peers/work"
)

// everything is a peer with all routes.
func everything(t *testing.T) *peers.Peer {
	t.Helper()
	all := peers.All()
	for i := range all {
		if all[i].Name == "fasthttp" {
			return &all[i]
		}
	}
	t.Fatal("there is no fasthttp")
	return nil
}

// config is for a check of a cheat.
func config(t *testing.T, addr string, p *peers.Peer, users string) Config {
	t.Helper()
	batch, err := batchOf(users)
	if err != nil {
		t.Fatal(err)
	}
	return Config{Addr: addr, Peer: p, Users: users, Batch: batch, Seed: 3}
}

// TestCheats has servers that get one thing wrong, each of which must be told apart.
func TestCheats(t *testing.T) {
	path, users := store(t)
	all := everything(t)
	canned := func(route string) func(*work.Exchange, []byte) []byte {
		var once sync.Once
		var first []byte
		return func(e *work.Exchange, right []byte) []byte {
			if e.Route != route {
				return right
			}
			once.Do(func() { first = right })
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
	started := sync.OnceValue(func() string { return "Date: " + time.Now().UTC().Format(http.TimeFormat) })
	for name, c := range map[string]struct {
		cheat       *cheat
		route, what string // how an Error begins
	}{
		"honest":                 {&cheat{}, "", ""},
		"a body too short":       {&cheat{body: func(*work.Exchange, []byte) []byte { return []byte("{}") }}, "ping", "body"},
		"a line feed more":       {&cheat{body: func(_ *work.Exchange, b []byte) []byte { return append(b, '\n') }}, "ping", "body"},
		"the same order":         {&cheat{body: canned("json")}, "json", "body"},
		"the same receipt":       {&cheat{body: canned("post")}, "post", "body"},
		"the same users":         {&cheat{body: canned("users")}, "users", "body"},
		"no Date":                {&cheat{field: replace("Date", "")}, "ping", "Date"},
		"an old Date":            {&cheat{field: replace("Date", "Date: "+ago)}, "ping", "Date"},
		"a Date of ours":         {&cheat{field: replace("Date", "Date: "+time.Now().UTC().Format(time.RFC3339))}, "ping", "Date"},
		"a Date in another zone": {&cheat{field: replace("Date", "Date: "+time.Now().UTC().Format(time.RFC1123))}, "ping", "Date"},
		"two Dates":              {&cheat{extra: "Date: " + ago + "\r\n"}, "ping", "Date"},
		"the Date of its start": {&cheat{field: func(line string) string {
			if strings.HasPrefix(line, "Date:") {
				return started()
			}
			return line
		}}, "ping", "Date"},
		"text":                 {&cheat{field: replace("Content-Type", "Content-Type: text/plain")}, "ping", "Content-Type"},
		"no type":              {&cheat{field: replace("Content-Type", "")}, "ping", "Content-Type"},
		"UTF-16":               {&cheat{field: replace("Content-Type", "Content-Type: application/json; charset=utf-16")}, "ping", "Content-Type"},
		"a length too small":   {&cheat{field: replace("Content-Length", "Content-Length: 3")}, "ping", "body"},
		"a length too large":   {&cheat{field: replace("Content-Length", "Content-Length: 999999"), oneAnswer: true}, "ping", "answer"},
		"a length with a sign": {&cheat{field: replace("Content-Length", "Content-Length: +15")}, "ping", "answer"},
		"no length":            {&cheat{field: replace("Content-Length", "")}, "ping", "answer"},
		"two lengths":          {&cheat{extra: "Content-Length: 15\r\n"}, "ping", "answer"},
		"a length and chunks":  {&cheat{extra: "Transfer-Encoding: chunked\r\n"}, "ping", "answer"},
		"compressed":           {&cheat{extra: "Content-Encoding: gzip\r\n"}, "ping", "Content-Encoding"},
		"a part":               {&cheat{extra: "Content-Range: bytes 0-14/15\r\n"}, "ping", "Content-Range"},
		"a cookie":             {&cheat{extra: "Set-Cookie: a=b\r\n"}, "ping", "Set-Cookie"},
		"a control character":  {&cheat{extra: "Server: a\x00b\r\n"}, "ping", "answer"},
		"a space in a name":    {&cheat{extra: "Server : a\r\n"}, "ping", "answer"},
		"a field without name": {&cheat{extra: ": a\r\n"}, "ping", "answer"},
		"204":                  {&cheat{status: "204 No Content"}, "ping", "status"},
		"+200":                 {&cheat{status: "+200 OK"}, "ping", "answer"},
		"0200":                 {&cheat{status: "0200 OK"}, "ping", "answer"},
		"one answer":           {&cheat{oneAnswer: true}, "json", "a further request on a connection"},
		"one connection":       {&cheat{single: true}, "ping", "answer"},
		"one buffer":           {&cheat{shared: true}, "", "an answer on 32 connections at once: "},
		"always close":         {&cheat{extra: "Connection: close\r\n"}, "ping", "Connection"},
		"stays open":           {&cheat{never: true}, "close", "what follows the answer to a request with Connection: close"},
		"stays open later":     {&cheat{late: true}, "close", "what follows the answer to a request with Connection: close"},
		"closes in silence":    {&cheat{silent: true}, "ping", "the answer to a request with Connection: close: Connection"},
		"the wrong way round":  {&cheat{swapped: true}, "", "answer 1 of 16 to pipelined requests: body"},
		"forgets":              {&cheat{drops: true}, "", "answer 2 of 16 to pipelined requests: answer"},
		"half a body":          {&cheat{oneRead: true}, "post", "a request in two pieces: "},
		"half a head":          {&cheat{oneHead: true}, "", "a request in two pieces: "},
		"any path":             {&cheat{any: true}, "unknown", "status"},
		"does not sleep":       {&cheat{awake: true}, "sleep", "time"},
		"sleeps alone":         {&cheat{alone: true}, "sleep", "time of 128 at once"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Check(t.Context(), config(t, c.cheat.serve(t, users), all, path))
			if name == "honest" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var wrong *Error
			if !errors.As(err, &wrong) || !strings.HasPrefix(wrong.What, c.what) || c.route != "" && wrong.Route != c.route {
				t.Errorf("got %v, want route %q, %q", err, c.route, c.what)
			}
		})
	}
}

// TestPingOnly has a server that forgets the beginning of a head, as one that is no floor.
func TestPingOnly(t *testing.T) {
	path, users := store(t)
	c := &cheat{oneHead: true}
	all := peers.All()
	for i := range all {
		p := &all[i]
		if p.Name != "nginx" && p.Name != "HAProxy" && p.Name != "pinion" {
			continue
		}
		_, err := Check(t.Context(), config(t, c.serve(t, users), p, path))
		var wrong *Error
		if !errors.As(err, &wrong) || !strings.HasPrefix(wrong.What, inPieces) {
			t.Errorf("%s: got %v, want that of %s", p.Name, err, inPieces)
		}
	}
}

// TestCloses has a floor: whether it closes depends on how it is started.
func TestCloses(t *testing.T) {
	path, users := store(t)
	all := peers.All()
	floor := &all[len(all)-1]
	if !floor.Canned {
		t.Fatalf("%s is not canned", floor.Name)
	}
	c := config(t, (&cheat{never: true, oneHead: true, any: true}).serve(t, users), floor, path)
	if _, err := Check(t.Context(), c); err != nil {
		t.Error(err)
	}
	c.Closes = true
	var wrong *Error
	if _, err := Check(t.Context(), c); !errors.As(err, &wrong) || wrong.Route != "close" {
		t.Errorf("got %v, want that it stays", err)
	}
}

// TestSizes compares sizes with what they are made of, and what peers with other routes are
// asked.
func TestSizes(t *testing.T) {
	path, users := store(t)
	all := peers.All()
	var mu sync.Mutex
	asked := map[string]map[string]bool{}
	for i := range all[:2] {
		p := &all[i]
		targets := map[string]bool{}
		asked[p.Name] = targets
		honest := &cheat{body: func(e *work.Exchange, right []byte) []byte {
			mu.Lock()
			defer mu.Unlock()
			if e.Route == work.RouteUsers {
				targets[e.Target] = true
			}
			return right
		}}
		c := config(t, honest.serve(t, users), p, path)
		sizes, err := Check(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		order, failed := work.NewJSON(17)
		post, err := work.NewPost(17)
		if failed != nil || err != nil {
			t.Fatal(failed, err)
		}
		batch, err := (&server{Config: c, users: users}).batch()
		if err != nil {
			t.Fatal(err)
		}
		routes := 0
		for _, e := range []work.Exchange{work.NewPing(), order, batch, post, work.NewSleep()} {
			if !p.Has(e.Route) {
				continue
			}
			routes++
			want := len((&cheat{}).head("200 OK", e.Want, false)) + len(e.Want)
			if sizes[e.Route] != want {
				t.Errorf("%s: %s: %d bytes, want %d", p.Name, e.Route, sizes[e.Route], want)
			}
		}
		if len(sizes) != routes {
			t.Errorf("%s: sizes %v of %d routes", p.Name, sizes, routes)
		}
	}
	// The engine has more routes than the product, and is so asked less often on each.
	for target := range asked["engine"] {
		if !asked["pinion"][target] {
			t.Errorf("the engine only was asked for %s", target)
		}
	}
	if n := len(asked["engine"]); n < 20 {
		t.Errorf("the engine was asked %d times", n)
	}
}

// TestBatch has targets that are no request for users.
func TestBatch(t *testing.T) {
	path, users := store(t)
	addr := (&cheat{}).serve(t, users)
	for _, batch := range []string{"", "/api/users?ids=", "/users?ids=1,2", "/api/users?ids=1,1"} {
		c := config(t, addr, everything(t), path)
		c.Batch = batch
		if _, err := Check(t.Context(), c); err == nil {
			t.Errorf("%q: no error", batch)
		}
	}
}

// TestCancel ends a check of a server that is silent.
func TestCancel(t *testing.T) {
	path, users := store(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked atomic.Bool
	c := &cheat{body: func(_ *work.Exchange, right []byte) []byte {
		asked.Store(true)
		cancel()
		<-t.Context().Done()
		return right
	}}
	began := time.Now()
	_, err := Check(ctx, config(t, c.serve(t, users), everything(t), path))
	if !errors.Is(err, context.Canceled) || !asked.Load() {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if took := time.Since(began); took >= patience {
		t.Errorf("it took %v", took)
	}
}
