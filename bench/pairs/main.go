// Command pairs compares servers by the CPU time each spends on a request. The
// server is pinned to CPU 0 and wrk to CPU 1; rounds are interleaved, so that
// what else happens on the host hits all alike; the figure is user plus system
// time of the server process from /proc/PID/stat, divided by the requests wrk
// counted. Every server starts once and stays up.
//
//	go run ./pairs -rounds 5 -conns 64 -path /api/ping \
//	    floor='/tmp/floor 8091 answer.txt' loop='./transport -addr 127.0.0.1:8092'
//
// The port is the first number of four or five digits in the command.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ticks is USER_HZ (time(7)), 100 on every Linux that Go runs on.
const ticks = 100

type server struct {
	name, addr string
	cmd        *exec.Cmd
	micros     []float64 // per request
	rates      []float64
	p99s       []string
}

func main() {
	rounds := flag.Int("rounds", 5, "interleaved rounds")
	conns := flag.Int("conns", 64, "connections of wrk")
	path := flag.String("path", "/api/ping", "")
	seconds := flag.Int("seconds", 3, "of each measurement")
	script := flag.String("script", "", "Lua script of wrk")
	factor := flag.Float64("factor", 1, "requests in one that wrk counts")
	cpus := flag.String("server-cpus", "0", "")
	wrkCPU := flag.String("wrk-cpu", "1", "")
	flag.Parse()
	if err := run(flag.Args(), *rounds, *conns, *seconds, *path, *script, *factor, *cpus, *wrkCPU); err != nil {
		log.Fatal(err)
	}
}

func run(args []string, rounds, conns, seconds int, path, script string, factor float64, cpus, wrkCPU string) error {
	var servers []*server
	defer func() {
		for _, s := range servers {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
		}
	}()
	for _, arg := range args {
		s, err := start(arg, cpus)
		if err != nil {
			return err
		}
		servers = append(servers, s)
	}
	for round := range rounds {
		for i := range servers {
			s := servers[(i+round)%len(servers)] // nobody is always first
			if err := s.measure(conns, seconds, path, script, factor, wrkCPU); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	base := median(servers[0].micros)
	for _, s := range servers {
		ratios := make([]float64, len(s.micros))
		for i := range ratios {
			ratios[i] = s.micros[i] / servers[0].micros[i]
		}
		fmt.Printf("%-10s %6.2f µs/req  ratio of medians %.3f  median of ratios %.3f  %8.0f req/s  p99 %v  all %.2f\n",
			s.name, median(s.micros), median(s.micros)/base, median(ratios), median(s.rates), s.p99s, s.micros)
	}
	return nil
}

func start(arg, cpus string) (*server, error) {
	name, command, ok := strings.Cut(arg, "=")
	port := regexp.MustCompile(`\b\d{4,5}\b`).FindString(command)
	if !ok || port == "" {
		return nil, fmt.Errorf("want name='command with a port', got %q", arg)
	}
	s := &server{name: name, addr: net.JoinHostPort("127.0.0.1", port)}
	s.cmd = exec.CommandContext(context.Background(), "taskset", append([]string{"-c", cpus}, strings.Fields(command)...)...)
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	for range 200 {
		c, err := net.Dial("tcp", s.addr)
		if err == nil {
			return s, c.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, fmt.Errorf("%s does not listen on %s", name, s.addr)
}

func (s *server) measure(conns, seconds int, path, script string, factor float64, wrkCPU string) error {
	args := []string{
		"-c", wrkCPU, "wrk", "-t1", "-c", strconv.Itoa(conns),
		"-d", strconv.Itoa(seconds) + "s", "--latency",
	}
	if script != "" {
		args = append(args, "-s", script)
	}
	before, err := s.cpu()
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(context.Background(), "taskset", append(args, "http://"+s.addr+path)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("wrk: %w: %s", err, out)
	}
	after, err := s.cpu()
	if err != nil {
		return err
	}
	m := regexp.MustCompile(`(\d+) requests in`).FindSubmatch(out)
	if m == nil {
		return fmt.Errorf("wrk said %q", out)
	}
	if bad := regexp.MustCompile(`Non-2xx.*|Socket errors.*`).Find(out); bad != nil {
		fmt.Printf("%s: %s\n", s.name, bad)
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		return fmt.Errorf("wrk said %q: %w", m[1], err)
	}
	n *= factor
	s.micros = append(s.micros, float64(after-before)*1e6/ticks/n)
	s.rates = append(s.rates, n/float64(seconds))
	if m := regexp.MustCompile(`99%\s+(\S+)`).FindSubmatch(out); m != nil {
		s.p99s = append(s.p99s, string(m[1]))
	}
	return nil
}

// cpu returns utime + stime of proc(5), in ticks.
func (s *server) cpu() (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("cpu time: %w", err)
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	var sum int64
	for _, f := range fields[11:13] {
		v, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("cpu time: %w", err)
		}
		sum += v
	}
	return sum, nil
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}
