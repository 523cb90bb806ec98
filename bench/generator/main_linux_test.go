package main

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pinion/bench/record"
)

func TestWrongFlags(t *testing.T) {
	const url = "http://127.0.0.1:1/"
	for _, args := range [][]string{
		{},
		{url, url},
		{"-no-such-flag", url},
		{"-rate", "fast", url},
		{"-rate", "-1", url},
		{"-shape", "square", url},
		{"-conns", "0", url},
		{"-duration", "0s", url},
		{"-header", "no colon", url},
		{"-beside-conns", "3", url},
		{"-beside", "ftp://x/", url},
		{"https://127.0.0.1/"},
		{"http://127.0.0.1:1/\n"},
	} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != 2 || strings.Count(errs.String(), "\n") != 1 || out.Len() > 0 {
			t.Errorf("%q: exit %d, said %q", args, code, errs.String())
		}
	}
	var out, errs bytes.Buffer
	if code := run([]string{"-h"}, &out, &errs); code != 0 || !strings.Contains(errs.String(), "-beside-conns") {
		t.Errorf("-h: exit %d, said %q", code, errs.String())
	}
}

func TestNobodyListens(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	var out, errs bytes.Buffer
	code := run([]string{"-conns", "2", "http://" + ln.Addr().String() + "/"}, &out, &errs)
	if code != 1 || !strings.Contains(errs.String(), "connection refused") || strings.Count(errs.String(), "\n") != 1 || out.Len() > 0 {
		t.Errorf("exit %d, said %q and %q", code, out.String(), errs.String())
	}
}

// What was measured until the server ended is printed, and the exit says that it is not all.
func TestServerEnds(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		once.Do(func() { time.AfterFunc(200*time.Millisecond, func() { _ = cmd.Process.Kill() }) })
	}))
	defer server.Close()
	pid := strconv.Itoa(cmd.Process.Pid)
	var out, errs bytes.Buffer
	code := run([]string{"-rate", "500", "-conns", "2", "-warmup", "0", "-duration", "1h", "-pid", pid, server.URL}, &out, &errs)
	_ = cmd.Wait()
	if code != 1 || !strings.Contains(errs.String(), "process "+pid) || !strings.Contains(errs.String(), "ended") || strings.Count(errs.String(), "\n") != 1 {
		t.Errorf("exit %d, said %q", code, errs.String())
	}
	if !strings.Contains(out.String(), "due answered in ") || !strings.Contains(out.String(), "latency   p50 ") || strings.Contains(out.String(), "NaN") {
		t.Errorf("printed %q", out.String())
	}
}

func TestOutput(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	args := []string{
		"-rate", "400", "-conns", "4", "-warmup", "8", "-duration", "250ms", "-shape", "jitter", "-seed", "7",
		"-pid", strconv.Itoa(os.Getpid()), "-beside", server.URL + "/missing", "-beside-conns", "1", server.URL,
	}
	var out, errs bytes.Buffer
	if code := run(append([]string{"-json"}, args...), &out, &errs); code != 0 {
		t.Fatal(code, errs.String())
	}
	var got struct {
		Requests, Due  int64
		Seconds        float64
		Rate, Achieved float64
		Latency        record.Latency
		Errors         record.Errors
		OwnLag         struct{ P99, Max *float64 } `json:"own_lag"`
		KeptUp         *bool                       `json:"kept_up"`
		Reason         *string
		Busy, CPU      *float64
		ServerCPU      *float64 `json:"server_cpu"`
		Seed           uint64
		Beside         *struct {
			Requests int64
			Seconds  float64
			Latency  record.Latency
			Errors   record.Errors
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Requests == 0 || got.Requests != got.Due || got.Seconds < 0.25 || got.Rate != 400 || got.Achieved <= 0 || got.Seed != 7 ||
		got.Latency.P50 <= 0 || len(got.Latency.Quantiles) < 10 || got.Errors != (record.Errors{}) {
		t.Errorf("got %s", out.Bytes())
	}
	if got.OwnLag.P99 == nil || got.OwnLag.Max == nil || got.KeptUp == nil || got.Reason == nil || got.Busy == nil || got.CPU == nil || got.ServerCPU == nil || *got.ServerCPU <= 0 {
		t.Errorf("something is missing in %s", out.Bytes())
	}
	if b := got.Beside; b == nil || b.Requests == 0 || b.Errors.Status != b.Requests || b.Latency.Max <= 0 || b.Seconds != got.Seconds {
		t.Errorf("beside: %+v", b)
	}
	out.Reset()
	if code := run(args, &out, &errs); code != 0 {
		t.Fatal(code, errs.String())
	}
	for _, want := range []string{"jitter, 400/s asked, seed 7", "latency", "p99.9", "errors    none", "own lag", "kept up", "busy", "server", "beside", " status\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
