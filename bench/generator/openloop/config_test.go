package openloop

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func config(url string) Config {
	return Config{
		URL: url, Method: "GET", Conns: 4, Threads: 1, Rate: 500, Shape: Constant,
		On: 200 * time.Millisecond, Off: 800 * time.Millisecond, Seed: 1,
		Duration: 300 * time.Millisecond, Timeout: 5 * time.Second,
	}
}

func TestCheck(t *testing.T) {
	good := config("http://127.0.0.1:1/")
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"no threads":           func(c *Config) { c.Threads = 0 },
		"too few connections":  func(c *Config) { c.Conns, c.Threads = 1, 2 },
		"negative rate":        func(c *Config) { c.Rate = -1 },
		"no rate":              func(c *Config) { c.Rate = math.NaN() },
		"endless rate":         func(c *Config) { c.Rate = math.Inf(1) },
		"rate beyond all":      func(c *Config) { c.Rate = 1e12 },
		"rate beyond a thread": func(c *Config) { c.Rate, c.Threads = 2.1e6, 2 },
		"nothing due":          func(c *Config) { c.Rate = 1 },
		"nothing in a pulse":   func(c *Config) { c.Shape, c.Rate, c.Duration = Pulse, 4, time.Minute },
		"shape":                func(c *Config) { c.Shape = "square" },
		"pulse without length": func(c *Config) { c.Shape, c.On = Pulse, 0 },
		"negative pause":       func(c *Config) { c.Shape, c.Off = Pulse, -1 },
		"duration":             func(c *Config) { c.Duration = 0 },
		"timeout":              func(c *Config) { c.Timeout = 0 },
		"warm-up":              func(c *Config) { c.Warmup = -1 },
		"process":              func(c *Config) { c.PID = -1 },
		"process above all":    func(c *Config) { c.PID = 1 << 30 },
		"beside without URL":   func(c *Config) { c.BesideConns = 1 },
		"beside without conns": func(c *Config) { c.Beside = "http://127.0.0.1/" },
		"beside elsewhere":     func(c *Config) { c.Beside, c.BesideConns = "ftp://127.0.0.1/", 1 },
		"no URL":               func(c *Config) { c.URL = "" },
		"https":                func(c *Config) { c.URL = "https://127.0.0.1/" },
		"no host":              func(c *Config) { c.URL = "http:///x" },
		"port":                 func(c *Config) { c.URL = "http://127.0.0.1:99999/" },
		"no method":            func(c *Config) { c.Method = "" },
		"method":               func(c *Config) { c.Method = "GET /x" },
		"header":               func(c *Config) { c.Header = []string{"no colon"} },
		"header of two lines":  func(c *Config) { c.Header = []string{"A: b\r\nC: d"} },
		"header name":          func(c *Config) { c.Header = []string{"A b: c"} },
		"length by hand":       func(c *Config) { c.Header = []string{"content-length: 3"} },
		"chunks by hand":       func(c *Config) { c.Header = []string{"Transfer-Encoding: chunked"} },
	} {
		c := good
		change(&c)
		if err := c.Check(); !errors.Is(err, ErrConfig) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTarget(t *testing.T) {
	for _, c := range []struct {
		url, method, body string
		header            []string
		addr, want        string
	}{
		{"http://127.0.0.1", "GET", "", nil, "127.0.0.1:80", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"},
		{"http://[::1]:8080/a%20b?c=1,2#d", "GET", "", nil, "[::1]:8080", "GET /a%20b?c=1,2 HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n"},
		{
			"http://127.0.0.1:81/", "POST", "{}",
			[]string{"Content-Type:application/json", "host: x"},
			"127.0.0.1:81",
			"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
		},
		{"http://127.0.0.1:81/", "PUT", "", nil, "127.0.0.1:81", "PUT / HTTP/1.1\r\nHost: 127.0.0.1:81\r\nContent-Length: 0\r\n\r\n"},
	} {
		got, err := newTarget(c.url, c.method, c.body, c.header)
		if err != nil || got.addr.String() != c.addr || string(got.request) != c.want {
			t.Errorf("%s: got %v %q, %v", c.url, got.addr, got.request, err)
		}
	}
}
