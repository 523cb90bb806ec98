package page

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pinion/bench/record"
)

// text renders the page of a run, with plain spaces, and checks what holds for any page.
func text(t *testing.T, run *record.Run) string {
	t.Helper()
	files := Render(Source{run, "raw.json"}, nil)
	page := string(files[Name])
	for name, file := range files {
		if bad := regexp.MustCompile(`NaN|[^a-z]Inf|%!|\bnil\b`).Find(file); bad != nil {
			t.Errorf("%s has %q", name, bad)
		}
		if name == Name {
			continue
		}
		if !strings.Contains(page, "]("+name+")") {
			t.Errorf("%s is not on the page", name)
		}
		for d := xml.NewDecoder(bytes.NewReader(file)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
		}
	}
	for _, link := range regexp.MustCompile(`!\[[^\]]*\]\(([^)]*)\)`).FindAllStringSubmatch(page, -1) {
		if files[link[1]] == nil {
			t.Errorf("the page shows %s, which is not there", link[1])
		}
	}
	columns := 0
	for line := range strings.Lines(page) {
		n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		if columns != 0 && n != 0 && n != columns {
			t.Errorf("a row of %d cells in a table of %d: %s", n-1, columns-1, line)
		}
		columns = n
	}
	return strings.ReplaceAll(page, "\u00a0", " ")
}

func wants(t *testing.T, page string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !strings.Contains(page, w) {
			t.Errorf("missing: %s", w)
		}
	}
}

func lacks(t *testing.T, page string, unwanted ...string) {
	t.Helper()
	for _, u := range unwanted {
		if strings.Contains(page, u) {
			t.Errorf("not wanted: %s", u)
		}
	}
}

// row returns the cells of the first row of a table that starts with those given.
func row(t *testing.T, page, start string) []string {
	t.Helper()
	i := strings.Index(page, "\n| "+start+" |")
	if i < 0 {
		t.Fatalf("no row starts with %s", start)
	}
	line, _, _ := strings.Cut(page[i+1:], "\n")
	cells := strings.Split(strings.Trim(line, "| "), " | ")
	return cells
}

// costing adds a sample for each figure, one a round.
func costing(run *record.Run, scenario string, conns int, peer string, micros ...float64) {
	for round, m := range micros {
		run.Samples = append(run.Samples, record.Sample{
			Scenario: scenario, Conns: conns, Peer: peer, Round: round, Requests: 1e6, Seconds: 10, ServerCPU: m, GeneratorCPU: 5,
		})
	}
}

func TestWholePage(t *testing.T) {
	run := synthetic()
	page := text(t, run)
	wants(t, page, "# Benchmarks", "on 4 March 2026, 05:06 UTC, in 18 minutes at revision `v0.3.0-12-gabcdef0`",
		"make bench-peers", "make bench-quick", "[the raw data](raw.json)",
		"![CPU time per ping request at 64 connections, by server](cpu-ping.svg)", "(latency-rate.svg)", "(latency-mix.svg)",
		"(latency-pulse.svg)", "(latency-jitter.svg)", "(memory-idle.svg)", "(throughput-ping.svg)", "(cpu.svg)",
		"Of the 13 bars", "| requests a second from one CPU | at least 80,000 | 91,200 | as wanted |",
		"| `net.ipv4.tcp_rmem` | `4096 131072 6291456` |", "| not affected by | l1tf, meltdown |", "| gcc | 12.2.0 |",
		"| **engine** | v1.2.3 | Go |", "| `0123456789ab` |", "5 rounds of each measurement.")
	lacks(t, page, "quick run", "[!NOTE]", "not measured in this run")
	for number := range 13 {
		row(t, page, strconv.Itoa(number+1))
	}
	if order := strings.Index(page, "\n| floor |"); order > strings.Index(page, "\n| **engine** |") {
		t.Error("the least is not first")
	}
}

func TestSameInputSameBytes(t *testing.T) {
	a, b := Render(Source{synthetic(), "raw.json"}, nil), Render(Source{synthetic(), "raw.json"}, nil)
	if len(a) != len(b) || len(a) != 9 {
		t.Errorf("%d and %d files", len(a), len(b))
	}
	for name := range a {
		if !bytes.Equal(a[name], b[name]) {
			t.Errorf("%s differs", name)
		}
	}
}

// TestOrderAndRatios has a host that is slow in the second round. By the medians of µs, other
// would stand before engine.
func TestOrderAndRatios(t *testing.T) {
	run := &record.Run{Rounds: 3, Peers: []record.Peer{{Name: "other"}, {Name: "engine"}, {Name: "fasthttp"}, {Name: "floor"}, {Name: "elsewhere"}}}
	costing(run, "ping", 64, "other", 7.5, 16, 7.5)
	costing(run, "ping", 64, "engine", 6, 14, 8)
	costing(run, "ping", 64, "fasthttp", 10, 20, 10) // of the rounds: 0.6, 0.7, 0.8
	costing(run, "ping", 64, "floor", 5, 5, 5)
	costing(run, "json", 64, "elsewhere", 5, 5, 5)
	page := text(t, run)
	if got := row(t, page, "**engine**"); !slices.Equal(got, []string{"**engine**", "–", "0.70", "1.60", "8.00 † (6.00 to 14.0)"}) {
		t.Errorf("got %q", got)
	}
	r := newReport(run, "")
	if want := []string{"floor", "engine", "other", "fasthttp", "elsewhere"}; !slices.Equal(r.order, want) {
		t.Errorf("order %v, want %v", r.order, want)
	}
	var b strings.Builder
	r.headlinePlot(&b)
	for _, want := range []string{">0.70</text>", ">8.00</text>", "divided by that of fasthttp", "<title>engine: 0.70</title>"} {
		if !bytes.Contains(r.plots["cpu-ping.svg"], []byte(want)) {
			t.Errorf("the plot has no %s", want)
		}
	}

	// With no fasthttp there is only the absolute figure.
	run.Samples = slices.DeleteFunc(run.Samples, func(s record.Sample) bool { return s.Peer == "fasthttp" })
	if got, want := newReport(run, "").order, []string{"floor", "other", "engine", "fasthttp", "elsewhere"}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

func TestMarks(t *testing.T) {
	run := &record.Run{Rounds: 3, Host: record.Host{ServerCPUs: "0", LoadCPUs: "1"}}
	costing(run, "ping", 64, "steady", 7, 7, 7.1)
	costing(run, "ping", 64, "unsteady", 7, 9, 12)
	costing(run, "ping", 64, "fast", 8, 8, 8)    // while the generator gave all it had
	costing(run, "ping", 64, "both", 10, 10, 10) // both did
	costing(run, "ping", 64, "failing", 8, 8, 8)
	for i := range run.Samples {
		switch s := &run.Samples[i]; s.Peer {
		case "fast", "both":
			s.GeneratorCPU = 9.6
		case "failing":
			s.Errors = &record.Errors{Status: 700, Timeout: 2}
		}
	}
	run.Samples = append(run.Samples,
		record.Sample{Scenario: "rate", Conns: 8, Peer: "kept", Rate: 100, Requests: 300, Seconds: 3, ServerCPU: 1, GeneratorCPU: 3},
		record.Sample{Scenario: "rate", Conns: 8, Peer: "lost", Rate: 100, Requests: 200, Seconds: 3, ServerCPU: 1, GeneratorCPU: 3, Behind: true})
	page := text(t, run)
	deep := page[strings.Index(page, "## Every scenario"):]
	wants(t, deep, "\n| steady | 7.00 (7.00 to 7.10) |", "\n| unsteady | 9.00 † (7.00 to 12.0) |", "\n| fast ‡ | 8.00", "\n| both | 10.0",
		"Errors in all rounds together: failing **2,106** (2,100 status, 6 timeout).\n", "\n| kept |", "\n| lost ‡ |", "| 80 % / 96 % |")

	// A machine with more CPUs for the generator: one of them is not all.
	run.Host.LoadCPUs = "1-2"
	lacks(t, text(t, run), "fast ‡")
	wants(t, text(t, run), "95 % of its CPUs")
}

func TestQuickRun(t *testing.T) {
	run := &record.Run{Quick: true, Rounds: 1, Command: "make bench-quick", Scenarios: []record.Scenario{{Name: "json", Title: "JSON"}, {Name: "ping"}}}
	costing(run, "ping", 64, "engine", 7)
	costing(run, "ping", 64, "fasthttp", 10)
	page := text(t, run)
	top, _, _ := strings.Cut(page, "##")
	if first := strings.Split(top, "\n")[2]; first != "**A quick run: 1 round, short ones, and not all of the scenarios. Good for a look, not to be quoted.**" {
		t.Errorf("first line: %s", first)
	}
	wants(t, top, "No figure was taken three times", "| **engine** | – | 0.70 | – | 7.00 |")
	wants(t, page, "Scenario `json`: not measured in this run.", "not measured: this run has no scenario `pipeline`",
		"| not measured: `floor` has no sample of `ping` | CPU, ping, 64 connections | engine ÷ floor | 1.12 | 1.05 | – |", "Not checked in this run.",
		"| goal met | CPU, ping, 64 connections | engine ÷ fasthttp | 0.87 | 0.75 | 0.700 |", "not measured: `engine` has no sample with 256 connections")
	lacks(t, page, "† |", "1 rounds")
}

// TestPartialRun has the reason before all else.
func TestPartialRun(t *testing.T) {
	run := &record.Run{Partial: "It was cut off after *two* of 5 rounds."}
	page := text(t, run)
	if first := strings.Split(page, "\n")[2]; first != `**This is not a whole run. It was cut off after \*two\* of 5 rounds.**` {
		t.Errorf("first line: %s", first)
	}
	run.Quick, run.Rounds = true, 2
	wants(t, text(t, run), "**A quick run: 2 rounds, ", "quoted. This is not a whole run. It was")
	lacks(t, text(t, &record.Run{}), "not a whole run")
}

// TestNoClosedLoopLatency prints none, though wrk tells one.
func TestNoClosedLoopLatency(t *testing.T) {
	run := &record.Run{}
	costing(run, "json", 64, "engine", 5)
	run.Samples[0].Latency, run.Samples[0].RSS = &record.Latency{P50: 777, P90: 888, P99: 999}, 3<<20
	page := text(t, run)
	wants(t, page, "\n| **engine** | 5.00 | – | 100,000 | 50 % / 50 % | 3.00 MiB |\n")
	lacks(t, page, "777", "888", "999", "p99 |")
}

func TestUsersLikeForLike(t *testing.T) {
	run := &record.Run{}
	costing(run, "users", 64, "pinion", 10)
	costing(run, "users", 64, "fasthttp", 50)
	page := text(t, run)
	wants(t, page, "other servers encode structs for each request")
	lacks(t, page, fragments, "to compare")
	costing(run, "users", 64, fragments, 20)
	page = text(t, run)
	wants(t, page, "| 7 | goal met | CPU, 20 users | pinion ÷ fasthttp | 0.40 | 0.25 | 0.200 |",
		"|  | to compare | both with JSON made beforehand | pinion ÷ fasthttp+fragments | – | – | 0.500 |",
		"Like for like is the comparison with `fasthttp+fragments`", "**1 met** (1 of them with the goal), **0 missed**, **0 undecided**, 12 not measured")
	run.Peers = []record.Peer{{Name: "pinion"}, {Name: "fasthttp"}, {Name: fragments, Language: "Go"}, {Name: "gin"}}
	for i, peer := range []string{"pinion", "fasthttp", "gin"} {
		costing(run, "ping", 64, peer, float64(5+i))
	}
	if got, want := newReport(run, "").order, []string{"pinion", "fasthttp", fragments, "gin"}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	if got := newReport(run, "").best("users", 64, figure{get: (*record.Sample).Micros}); got != "" {
		t.Errorf("%q counts as another server", got)
	}
}

func TestEmptyRun(t *testing.T) {
	page := text(t, &record.Run{})
	wants(t, page, "was not measured in this run", "at an unknown time", "**0 met**", "13 not measured")
	var out strings.Builder
	if err := Summary(&out, &record.Run{}); err != nil || out.String() != "CPU, µs/request\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// A server that answered nothing must not look like one that costs nothing.
func TestNothingAnswered(t *testing.T) {
	run := &record.Run{Rounds: 1}
	costing(run, "ping", 64, "fasthttp", 10)
	run.Samples = append(run.Samples, record.Sample{Scenario: "ping", Conns: 64, Peer: "engine", Seconds: 10, ServerCPU: 3, Errors: &record.Errors{Connect: 5}})
	page := text(t, run)
	wants(t, page, "| not measured: no round has a figure of `engine` and of `fasthttp` | CPU, ping, 64 connections | engine ÷ fasthttp | 0.87 | 0.75 | – |", "**engine** **5** (5 connect)")
	lacks(t, page, "| goal met |")
	if order := newReport(run, "").order; order[0] != "fasthttp" {
		t.Errorf("order %v", order)
	}
}

func TestEscapes(t *testing.T) {
	run := &record.Run{
		Method:    []string{"a <b>\nand `x < y | z`"},
		Peers:     []record.Peer{{Name: "a|b", Version: "1|2", Setup: "<script>, `-x|y`, and a ` alone"}},
		Generator: []record.Generator{{Name: "x|y", Want: "1", Got: "2", OK: false}},
		Host:      record.Host{CPU: "Fast & <Furious>", Mitigations: map[string]string{"v": "a|b"}},
	}
	costing(run, "ping", 64, "a|b", 5)
	page := text(t, run)
	wants(t, page, `- a &lt;b&gt; and `+"`x < y | z`", `| a\|b | 1\|2 |`, "&lt;script&gt;, \\`-x\\|y\\`, and a \\` alone",
		`| x\|y | 1 | 2 | **not as wanted** |`, "**1 of 1 check failed", "| CPU | Fast &amp; &lt;Furious&gt; |", "| `v` | a\\|b |")
	lacks(t, page, "<script", "<Fur")
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"latency-old.svg", "cpu.svg", "engine.md", "logo.svg", "raw.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Write(dir, map[string][]byte{Name: []byte("page"), "memory-idle.svg": []byte("plot")}); err != nil {
		t.Fatal(err)
	}
	var left []string
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		left = append(left, f.Name())
	}
	if want := []string{"README.md", "engine.md", "logo.svg", "memory-idle.svg", "raw.json"}; !slices.Equal(left, want) {
		t.Errorf("left %v, want %v", left, want)
	}
	if err := Write(filepath.Join(dir, "none"), nil); err == nil {
		t.Error("a folder that is not there")
	}
}

func TestSummary(t *testing.T) {
	run := &record.Run{Rounds: 3}
	costing(run, "ping", 64, "engine", 7, 7, 7)
	costing(run, "ping", 64, "fasthttp", 8, 10, 14)
	costing(run, "json", 64, "fasthttp", 12, 12, 12)
	run.Samples[0].Errors = &record.Errors{Read: 1}
	run.Samples = append(run.Samples, record.Sample{Scenario: "idle", Conns: 9, Peer: "engine", Open: 9, RSS: 900})
	for round := range 3 {
		run.Samples = append(run.Samples, record.Sample{
			Scenario: "rate", Conns: 256, Peer: "engine", Round: round, Rate: 100, Requests: 100, Seconds: 1, ServerCPU: 0.1,
			Behind: true, Latency: &record.Latency{P50: 100, P99: 2500},
		})
	}
	var out strings.Builder
	if err := Summary(&out, run); err != nil {
		t.Fatal(err)
	}
	want := `CPU, µs/request  ping 64  json 64
engine             7.00!        –
fasthttp           10.0†     12.0
p99       rate 256
engine    2.50 ms‡
fasthttp         –
† unsteady, or fewer than three rounds
‡ the generator was the limit, not the server
! there were errors
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{digits(0), "0"},
		{digits(9.996), "10.0"},
		{digits(0.0123456), "0.0123"},
		{digits(84321), "84,300"},
		{digits(1234567), "1,230,000"},
		{digits(-1234), "-1,230"},
		{digits(-123), "-123"},
		{three(1234.5678), "1,234.568"},
		{hundredths(-0.004), "0.00"},
		{hundredths(0.0099), "0.00"},
		{hundredths(0.01), "0.0100"},
		{hundredths(-0.12), "-0.120"},
		{duration(0.5), "0.500 µs"},
		{duration(999.4), "999 µs"},
		{duration(999.6), "1.00 ms"},
		{duration(2.5e6), "2.50 s"},
		{bytesOf(276), "276 B"},
		{bytesOf(1024), "1.00 KiB"},
		{bytesOf(15952), "15.6 KiB"},
		{bytesOf(3 << 40), "3,070 GiB"},
		{tick(duration)(200), "200 µs"},
		{tick(duration)(5000), "5 ms"},
		{tick(digits)(0), "0"},
		{tick(digits)(2.5), "2.5"},
		{percent(0.994), "99 %"},
		{count(-12345), "-12,345"},
		{plural(1, "round"), "1 round"},
		{plural(1024, "connection"), "1,024 connections"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
