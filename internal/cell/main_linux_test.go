package cell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pinion/affinity"
)

// The test binary is also the program that is supervised, and can be the
// supervisor.
const (
	programEnv    = "CELL_TEST_PROGRAM"
	supervisorEnv = "CELL_TEST_SUPERVISOR"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(identityEnv) != "":
		os.Exit(program())
	case os.Getenv(supervisorEnv) != "":
		os.Exit(supervise())
	}
	goleak.VerifyTestMain(m)
}

// behaviour says what the program does, other than serve, drain and end with 0.
type behaviour struct {
	Fail    map[int]int           // status that a cell ends with before it is ready
	Crash   map[int]int           // the same for after it was ready
	Startup map[int]time.Duration // before it is ready
	Drain   time.Duration         // before it ends at SIGTERM
	Slow    time.Duration         // for each removal
	Deaf    bool                  // SIGTERM does nothing
	Linger  time.Duration         // after Close
}

func (b behaviour) environ() []string {
	text, err := json.Marshal(b)
	if err != nil {
		panic(err)
	}
	return append(os.Environ(), programEnv+"="+string(text))
}

// program is one cell. It returns its exit status.
func program() int {
	var b behaviour
	if err := json.Unmarshal([]byte(os.Getenv(programEnv)), &b); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 90
	}
	m, err := Inherited()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 91
	}
	if status, ok := b.Fail[m.Index()]; ok {
		return status
	}
	cache := &cache{removed: map[int64]bool{}}
	m.OnRemoval(func(id int64) {
		time.Sleep(b.Slow)
		cache.remove(id)
	})
	m.OnFlush(cache.flush)
	stop := make(chan os.Signal, 1)
	if b.Deaf {
		signal.Ignore(syscall.SIGTERM)
	} else {
		signal.Notify(stop, syscall.SIGTERM)
	}
	time.Sleep(b.Startup[m.Index()])
	for _, ln := range m.Listeners() {
		go http.Serve(ln, public(m, cache)) //nolint:errcheck // until it ends
	}
	go http.Serve(m.Admin(), admin(m, cache)) //nolint:errcheck // until it ends
	if err := m.Ready(); err != nil {
		return 92
	}
	if status, ok := b.Crash[m.Index()]; ok {
		time.Sleep(50 * time.Millisecond) // until ready has been read, which is not what is tested
		return status
	}
	<-stop
	signal.Reset(syscall.SIGTERM)
	if err := m.Draining(); err != nil {
		return 93
	}
	for _, ln := range m.Listeners() {
		_ = ln.Close() // nobody is waited for
	}
	time.Sleep(b.Drain)
	m.Close()
	time.Sleep(b.Linger)
	return 0
}

// cache notes what was removed.
type cache struct {
	mu      sync.Mutex
	removed map[int64]bool
	calls   int
	flushes int
}

func (c *cache) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flushes++
}

func (c *cache) remove(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removed[id] = true
	c.calls++
}

// public is the public server of a cell.
func public(m *Member, c *cache) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/calls" {
			c.mu.Lock()
			defer c.mu.Unlock()
			fmt.Fprint(w, c.calls)
			return
		}
		fmt.Fprintf(w, "cell %d", m.Index())
	})
}

// admin is the private server of a cell.
func admin(m *Member, c *cache) http.Handler {
	mux := http.NewServeMux()
	number := func(r *http.Request, name string) int64 {
		n, err := strconv.ParseInt(r.FormValue(name), 10, 64)
		if err != nil {
			panic(err) // a fault of the test
		}
		return n
	}
	mux.HandleFunc("/self", func(w http.ResponseWriter, _ *http.Request) {
		fds, err := descriptors("self")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		allowed, _ := affinity.Allowed()
		file, _ := os.ReadFile(FilePath(0)) // a listener, if there is no file
		_ = json.NewEncoder(w).Encode(self{
			PID: os.Getpid(), Group: syscall.Getpgrp(), Index: m.Index(), Of: m.Of(),
			Placement: m.Placement().String(), Share: m.Share(), Listeners: len(m.Listeners()),
			Variable: os.Getenv(identityEnv), Descriptors: fds, Allowed: allowed.String(), File: string(file),
		})
	})
	mux.HandleFunc("/announce", func(w http.ResponseWriter, r *http.Request) {
		if err := m.Announce(r.Context(), number(r, "id")); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("/impatient", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 20*time.Millisecond)
		defer cancel()
		if err := m.Announce(ctx, number(r, "id")); !errors.Is(err, context.DeadlineExceeded) {
			http.Error(w, fmt.Sprint(err), http.StatusInternalServerError)
		}
	})
	// n announcements by as many goroutines at once as callers says.
	mux.HandleFunc("/burst", func(w http.ResponseWriter, r *http.Request) {
		base, n, callers := number(r, "base"), number(r, "n"), number(r, "callers")
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				for id := base + i; id < base+n; id += callers {
					if err := m.Announce(r.Context(), id); err != nil {
						http.Error(w, err.Error(), http.StatusInternalServerError)
						return
					}
				}
			})
		}
		all.Wait()
	})
	mux.HandleFunc("/removed", func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if r.FormValue("id") != "" {
			fmt.Fprint(w, c.removed[number(r, "id")])
			return
		}
		fmt.Fprintf(w, "%d in %d calls", len(c.removed), c.calls)
	})
	mux.HandleFunc("/flushes", func(w http.ResponseWriter, _ *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		fmt.Fprint(w, c.flushes)
	})
	// Something that no cell should say.
	mux.HandleFunc("/nonsense", func(http.ResponseWriter, *http.Request) {
		m.out.put(message{packet: packet(kindWelcome)})
	})
	return mux
}

// self is what a cell knows about itself.
type self struct {
	File                         string // the content of file 0
	PID, Group, Index, Of        int
	Placement, Variable, Allowed string
	Share                        float64
	Listeners, Descriptors       int
}

// descriptors counts those of a process.
func descriptors(pid string) (int, error) {
	entries, err := os.ReadDir("/proc/" + pid + "/fd")
	return len(entries), err
}

// supervise is a supervisor with two cells. It returns its exit status.
func supervise() int {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 94
	}
	cpus, err := affinity.Allowed()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 95
	}
	where := affinity.Placement{CPUs: cpus}
	s := New(Config{
		Specs: []Spec{{Index: 0, Placement: where, Listeners: []net.Listener{ln}}, {Index: 1, Placement: where}},
		Log:   slog.New(slog.NewTextHandler(os.Stderr, nil)), Stdout: os.Stderr,
	})
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		for range signals {
			s.Stop()
		}
	}()
	if os.Getenv(supervisorEnv) == "held" {
		go hold(s)
	}
	err = s.Run(context.Background())
	var exit *ExitError
	if errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, err)
		return exit.ExitCode()
	}
	if err != nil {
		return 96
	}
	return 0
}

// hold has another process keep the supervisor's ends of all pairs open.
func hold(s *Supervisor) {
	for _, c := range s.cells {
		<-c.ready
	}
	holder := exec.Command("sleep", "60")
	s.mu.Lock()
	for _, c := range s.cells {
		if file, err := c.life.control.conn.File(); err == nil {
			holder.ExtraFiles = append(holder.ExtraFiles, file)
		}
	}
	s.mu.Unlock()
	err := holder.Start()
	fmt.Fprintf(os.Stderr, "holder pid=%d %v\n", holder.Process.Pid, err)
}

// discard is where cells write.
func discard(t *testing.T) *os.File {
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}
