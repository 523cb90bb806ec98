package main

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pinion/users/members"
	"pinion/users/sqldb"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

func TestWrongFlags(t *testing.T) {
	for _, args := range [][]string{
		{"-nonsense"},
		{"extra"},
		{"-members", "-1"},
		{"-latency", "-1s"},
		{"-jitter", "soon"},
		{"-fail-ratio", "1.5"},
		{"-hang-ratio", "NaN"},
		{"-fail-ratio", "0.6", "-hang-ratio", "0.6"},
	} {
		var stderr bytes.Buffer
		if status := run(context.Background(), args, &stderr); status != 2 {
			t.Errorf("%q: status %d, want 2", args, status)
		}
		if text := stderr.String(); strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "memberserver: ") {
			t.Errorf("%q: want one line, got %q", args, text)
		}
	}
}

func TestAddressInUse(t *testing.T) {
	var stderr bytes.Buffer
	if status := run(context.Background(), []string{"-addr", "256.0.0.1:1"}, &stderr); status != 1 {
		t.Errorf("status %d, want 1: %s", status, &stderr)
	}
	if strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("want one line, got %q", &stderr)
	}
}

// TestSameAsDemo holds the service to the data of pinion's own demo.
func TestSameAsDemo(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	lines, stderr := io.Pipe()
	status := make(chan int, 1)
	go func() {
		status <- run(ctx, []string{"-addr", "127.0.0.1:0", "-members", "600"}, stderr)
		_ = stderr.Close()
	}()
	first := make([]byte, 512)
	n, err := lines.Read(first)
	if err != nil {
		t.Fatal(err)
	}
	log := make(chan string, 1)
	go func() {
		rest, _ := io.ReadAll(lines)
		log <- string(rest)
	}()
	addr := regexp.MustCompile(`msg=serving addr=(\S+) users=600`).FindSubmatch(first[:n])
	if addr == nil {
		t.Fatalf("no address in %q", first[:n])
	}

	db, err := sqldb.Open(ctx, sqldb.Options{DSN: "sqlite::memory:"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // only read
	if _, err := db.Fill(ctx, 600, nil); err != nil {
		t.Fatal(err)
	}
	c, err := members.New(members.Options{BaseURL: "http://" + string(addr[1]), Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var ids []int64
	for id := int64(1); id <= 610; id++ {
		ids = append(ids, id)
	}
	got, err := c.Members(ctx, ids)
	if err != nil {
		t.Fatal(err)
	}
	want, err := db.Members(ctx, ids)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) || len(got) < 300 {
		t.Fatalf("%d members, want %d", len(got), len(want))
	}
	for id, m := range want {
		if got[id] != m {
			t.Errorf("%d: got %v, want %v", id, got[id], m)
		}
	}
	stop()
	if got := <-status; got != 0 {
		t.Errorf("status %d, want 0", got)
	}
	if text := <-log; !strings.Contains(text, "msg=stopped requests=3 ids=610") {
		t.Errorf("log %q", text)
	}
}
