// Command idle opens connections, has each serve one request, and keeps them
// idle: it prints the server's resident memory before and after.
//
//	go run ./idle -addr 127.0.0.1:8080 -pid PID -conns 10000
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"time"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "")
	pid := flag.Int("pid", 0, "of the server")
	conns := flag.Int("conns", 10_000, "")
	flag.Parse()
	if err := run(*addr, *pid, *conns); err != nil {
		log.Fatal(err)
	}
}

func run(addr string, pid, conns int) error {
	if err := collect(addr); err != nil {
		return err
	}
	before, err := resident(pid)
	if err != nil {
		return err
	}
	open := make([]net.Conn, 0, conns)
	for i := range conns {
		// One source address has 28,000 ports; use several.
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i/20_000))}}
		c, err := d.Dial("tcp", addr)
		if err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
		open = append(open, c)
		if _, err := io.WriteString(c, "GET /api/ping HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			return err
		}
		resp, err := http.ReadResponse(bufio.NewReaderSize(c, 512), nil)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
	}
	if err := collect(addr); err != nil {
		return err
	}
	time.Sleep(time.Second)
	after, err := resident(pid)
	if err != nil {
		return err
	}
	fmt.Printf("%d connections: %d KiB before, %d KiB after, %.0f bytes each\n", len(open), before>>10, after>>10, float64(after-before)/float64(len(open)))
	for _, c := range open {
		_ = c.Close()
	}
	return nil
}

// collect has the server give free memory back to the system.
func collect(addr string) error {
	resp, err := http.Get("http://" + addr + "/stats")
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// resident returns VmRSS of proc(5), in bytes.
func resident(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(b)
	if m == nil {
		return 0, fmt.Errorf("no VmRSS for %d", pid)
	}
	kib, err := strconv.ParseInt(string(m[1]), 10, 64)
	return kib << 10, err
}
