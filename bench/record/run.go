package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// Version is that of the file format. It rises when a field changes its meaning.
const Version = 1

// ErrVersion is returned for a file of another Version.
var ErrVersion = errors.New("another version of the format")

// Run is one run of the side-by-side measurement.
type Run struct {
	Version  int       `json:"version"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended"`
	Command  string    `json:"command"`  // that makes such a run
	Revision string    `json:"revision"` // of the tree that was measured, as git describe says it
	Quick    bool      `json:"quick,omitempty"`
	// Partial says in a sentence why this is not a whole run: it was restricted, or cut off.
	Partial string `json:"partial,omitempty"`
	Rounds  int    `json:"rounds"`
	Host    Host   `json:"host"`
	// Method is what a reader has to know about this run in particular, one sentence each:
	// which CPUs, what was left out and why.
	Method    []string    `json:"method"`
	Peers     []Peer      `json:"peers"`
	Scenarios []Scenario  `json:"scenarios"`
	Generator []Generator `json:"generator"`
	Samples   []Sample    `json:"samples"`
}

// Host describes the machine.
type Host struct {
	CPU         string            `json:"cpu"`  // model
	CPUs        int               `json:"cpus"` // online
	Memory      int64             `json:"memory"`
	Virtual     string            `json:"virtual,omitempty"` // hypervisor, if any
	Kernel      string            `json:"kernel"`
	Governor    string            `json:"governor"` // of cpufreq, or why there is none
	Go          string            `json:"go"`
	Load        string            `json:"load"`        // load average before the run
	Mitigations map[string]string `json:"mitigations"` // of /sys/devices/system/cpu/vulnerabilities
	Sysctls     map[string]string `json:"sysctls"`
	Tools       map[string]string `json:"tools"`   // wrk, gcc: their versions
	Descriptors uint64            `json:"nofile"`  // RLIMIT_NOFILE
	ServerCPUs  string            `json:"server"`  // list of CPUs
	LoadCPUs    string            `json:"load_on"` // list of CPUs of the generators
}

// Peer is one server of the comparison.
type Peer struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Setup    string `json:"setup"`  // how, and by which advice, in a sentence
	SHA256   string `json:"sha256"` // of the binary that ran
	Language string `json:"language"`
	// Answers is the size of the whole answer in bytes, head and body, by route.
	Answers map[string]int `json:"answers,omitempty"`
}

// Scenario is one kind of load.
type Scenario struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	About string `json:"about"` // what is sent and what is measured, in a sentence or two
	Conns []int  `json:"conns"`
}

// Generator is one check of a load generator.
type Generator struct {
	Name     string  `json:"name"` // what is checked
	Want     string  `json:"want"`
	Got      string  `json:"got"`
	OK       bool    `json:"ok"`
	Expected float64 `json:"expected,omitempty"`
	Measured float64 `json:"measured,omitempty"`
}

// Sample is one measurement of one peer.
type Sample struct {
	Scenario string `json:"scenario"`
	Conns    int    `json:"conns"`
	Peer     string `json:"peer"`
	Round    int    `json:"round"`
	Route    string `json:"route,omitempty"` // where a peer has a sample for each of its routes

	Requests int64   `json:"requests"` // answered
	Seconds  float64 `json:"seconds"`
	// CPU time in seconds, user and system, of all processes of the server, and of the
	// generator. The one of the open loop polls while it waits, which is left out.
	ServerCPU    float64 `json:"server_cpu"`
	GeneratorCPU float64 `json:"generator_cpu"`
	RSS          int64   `json:"rss"` // of all processes of the server, in bytes, at the end

	Errors  *Errors  `json:"errors,omitempty"` // nil: none
	Latency *Latency `json:"latency,omitempty"`

	// Open loop only.
	Rate   float64 `json:"rate,omitempty"`    // requests a second that were due
	OwnLag float64 `json:"own_lag,omitempty"` // µs, p99: how late the generator sent what it could have sent
	Behind bool    `json:"behind,omitempty"`  // the generator did not keep up
	Beside int64   `json:"beside,omitempty"`  // requests of other routes answered meanwhile

	// Idle connections only. The memory before was taken with OpenBefore of them open, since
	// the first ones go into room that the process has left.
	Open       int   `json:"open,omitempty"` // connections
	OpenBefore int   `json:"open_before,omitempty"`
	RSSBefore  int64 `json:"rss_before,omitempty"`

	// Allocations only: objects a request, in the whole process.
	Allocations *float64 `json:"allocations,omitempty"`
}

// Errors counts what did not go as it should.
type Errors struct {
	Status  int64 `json:"status,omitempty"` // answers other than 2xx
	Connect int64 `json:"connect,omitempty"`
	Read    int64 `json:"read,omitempty"`
	Write   int64 `json:"write,omitempty"`
	Timeout int64 `json:"timeout,omitempty"`
}

// Latency is in microseconds. Those of an open loop count from when the request was due.
type Latency struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999,omitempty"` // wrk does not tell
	Max  float64 `json:"max"`
	// Quantiles are more of them, ascending, where the generator knows the distribution.
	Quantiles []Quantile `json:"quantiles,omitempty"`
}

// Quantile says that a part of all requests, from 0 to 1, took at most so long.
type Quantile struct {
	Part   float64 `json:"q"`
	Micros float64 `json:"us"`
}

// Micros returns the CPU time of the server per request, in microseconds. Those beside
// count, too.
func (s *Sample) Micros() float64 {
	n := s.Requests + s.Beside
	if n == 0 {
		return 0
	}
	return s.ServerCPU * 1e6 / float64(n)
}

// PerSecond returns the requests answered a second.
func (s *Sample) PerSecond() float64 {
	if s.Seconds == 0 {
		return 0
	}
	return float64(s.Requests) / s.Seconds
}

// PerConnection returns the memory of an idle connection, in bytes: what each of those
// opened since RSSBefore was taken has added. It is 0 where there are none.
func (s *Sample) PerConnection() float64 {
	more := s.Open - s.OpenBefore
	if more <= 0 {
		return 0
	}
	return float64(s.RSS-s.RSSBefore) / float64(more)
}

// Read reads a file that Write wrote.
func Read(path string) (*Run, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r Run
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if r.Version != Version {
		return nil, fmt.Errorf("%s: %w: %d, want %d", path, ErrVersion, r.Version, Version)
	}
	return &r, nil
}
