package main

import (
	"bytes"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"
)

func TestExpect(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"-expect", "-rate", "1000", "-duration", "10s", "-stop", "100ms", "-every", "2s"}, &out, &errs); code != 0 {
		t.Fatal(code, errs.String())
	}
	var got expected
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	// A twentieth of 10,000 requests is late, half of those by half a stop.
	if got.Slower != 250 || got.Latency.P99 != 80_000 || got.Latency.P999 != 98_000 || got.Latency.Max != 100_000 || got.Latency.P50 != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{
		{"-stop", "2s", "-every", "2s"},
		{"-stop", "-1s"},
		{"-rate", "0"},
		{"-no-such-flag"},
		{"argument"},
	} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit %d, said %q", args, code, errs.String())
		}
	}
	var out, errs bytes.Buffer
	if code := run([]string{"-addr", "127.0.0.1:99999"}, &out, &errs); code != 1 || !strings.Contains(errs.String(), "99999") {
		t.Errorf("exit %d, said %q", code, errs.String())
	}
}

func TestStops(t *testing.T) {
	const stop, every = 100 * time.Millisecond, 300 * time.Millisecond
	ln := fasthttputil.NewInmemoryListener()
	var g gate
	go g.run(stop, every)
	server := &fasthttp.Server{Handler: g.ping}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()
	client := &fasthttp.Client{Dial: func(string) (net.Conn, error) { return ln.Dial() }}
	slow := 0
	for start := time.Now(); time.Since(start) < 2*every+every/2; {
		asked := time.Now()
		code, body, err := client.Get(nil, "http://stall/")
		if err != nil || code != 200 || string(body) != `{"status":"ok"}` {
			t.Fatalf("%d %q %v", code, body, err)
		}
		if time.Since(asked) >= stop/2 {
			slow++
		}
	}
	if slow < 2 {
		t.Errorf("%d answers were held up in two periods", slow)
	}
	client.CloseIdleConnections()
	if err := server.Shutdown(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
