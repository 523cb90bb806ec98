package accesslog

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/bits"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/cpu"

	"pinion/handlers"
	"pinion/internal/stats"
)

// DefaultLines is how many lines the ring holds if Config.Lines is zero: at 100,000
// lines a second it fills in 40 ms.
const DefaultLines = 4096

// Batches.
const (
	// DefaultBatchBytes is how much is gathered for one Write: a pipe takes 64 KiB at
	// once (pipe(7)).
	DefaultBatchBytes = 64 << 10
	// MinBatchBytes is the least that Config.BatchBytes can be, and on Linux PIPE_BUF:
	// a Write of at most so much to a pipe is never mixed with those of other processes
	// (pipe(7)).
	MinBatchBytes = 4 << 10
)

// linger is how long the first line of a batch may wait for others. One wake-up per
// batch, not per line, is what keeps logging cheap.
const linger = 20 * time.Millisecond

// Config is what a Log needs. The zero value logs nothing.
type Config struct {
	Mode Mode
	// Out gets the lines, several with each Write, from one goroutine; nil means
	// os.Stdout. It is not closed.
	Out io.Writer
	// Lines is the size of the ring, rounded up to a power of two, from 4 to 1 Mi; 0 means
	// DefaultLines. It costs 600 bytes a line, and up to 4 KiB where long lines were.
	Lines int
	// BatchBytes caps one Write, in bytes; 0 means DefaultBatchBytes, and less than
	// MinBatchBytes means that. Each Write is of whole lines. Processes that share one
	// pipe need MinBatchBytes, or they tear each other's lines.
	BatchBytes int
	// Cell is the number of this process among those that share Out, and ends each line
	// as "cell"; nil leaves it out.
	Cell *int
	// Stats gets the counters of written and dropped lines and of failed writes; nil means
	// a registry of its own.
	Stats *stats.Registry
	// Log gets a line when writing begins to fail and when it works again; nil means
	// slog.Default().
	Log *slog.Logger
}

// Log is an access log, a handlers.AccessLog. It is safe for concurrent use.
type Log struct {
	mode    Mode
	turns   []turn // of the mode 1/N; the length is a power of two
	ring    *ring
	tail    string // of every line
	batch   int    // most bytes of one Write, and so of a line
	dropped *stats.Counter
	writer  writer

	closing sync.Once
	idle    atomic.Bool   // the writer sleeps until the next line
	wake    chan struct{} // holds one token; the writer has something to do
	done    chan struct{} // closed when the writer has ended
}

// turn counts the requests of one shard.
type turn struct {
	n atomic.Uint64
	_ cpu.CacheLinePad
}

// New starts a Log. Close ends it.
func New(cfg Config) *Log {
	if cfg.Out == nil {
		cfg.Out = os.Stdout
	}
	if cfg.Stats == nil {
		cfg.Stats = stats.NewRegistry(0)
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Lines <= 0 {
		cfg.Lines = DefaultLines
	}
	if cfg.BatchBytes <= 0 {
		cfg.BatchBytes = DefaultBatchBytes
	}
	const most = 1 << 20
	l := &Log{
		mode:    cfg.Mode,
		turns:   make([]turn, ceilPow2(runtime.GOMAXPROCS(0))),
		ring:    newRing(ceilPow2(min(max(cfg.Lines, 4), most))),
		tail:    tail(cfg.Cell),
		batch:   max(cfg.BatchBytes, MinBatchBytes),
		dropped: cfg.Stats.Counter("access_log_dropped_total", "Access log lines that were lost: the ring was full, or a write failed.").With(),
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	l.writer = writer{
		out:     cfg.Out,
		log:     cfg.Log,
		written: cfg.Stats.Counter("access_log_written_total", "Access log lines written.").With(),
		failed:  cfg.Stats.Counter("access_log_write_errors_total", "Failed writes of the access log, each of many lines.").With(),
		dropped: l.dropped,
	}
	go l.run()
	return l
}

func ceilPow2(n int) int { return 1 << bits.Len(uint(n-1)) }

// Wants reports whether a request that was answered with status gets a line. In the
// mode 1/N it counts the request, so it is called once for each. shard is a hint as
// for stats.Counter.Add: of the requests of one shard, every Nth is chosen.
func (l *Log) Wants(shard uint64, status int) bool {
	switch l.mode.kind {
	case all:
		return true
	case errorsOnly:
		return status >= 400
	case sample:
		turn := l.turns[shard&uint64(len(l.turns)-1)].n.Add(1)
		return turn%l.mode.n == 0 || status >= 500
	}
	return false
}

// Record writes the line of e, whatever the mode. It has copied all of e before it
// returns. It never waits: if the ring is full, or the Log is closed, the line is
// dropped and counted.
func (l *Log) Record(shard uint64, e *handlers.Entry) {
	from := newRemote(e.Remote)
	s, pos, ok := l.ring.claim()
	if !ok {
		l.dropped.Add(shard, 1)
		return
	}
	s.buf = appendLine(s.buf[:0], e, from, textBytes, l.tail)
	if len(s.buf) > l.batch {
		s.buf = appendLine(s.buf[:0], e, from, shortTextBytes, l.tail)
	}
	s.publish(pos)

	// The writer waits for the first line after a pause, and then, as it lets lines
	// gather, for the ring to fill by another quarter.
	if pos&uint64(len(l.ring.slots)/4-1) == 0 || (l.idle.Load() && l.idle.CompareAndSwap(true, false)) {
		l.poke()
	}
}

func (l *Log) poke() {
	select {
	case l.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// Close refuses further lines, writes those that are there and ends the goroutine. If
// ctx ends first, it returns an error that wraps that of ctx; the goroutine then ends
// when the io.Writer lets it. A second Close waits in the same way.
func (l *Log) Close(ctx context.Context) error {
	l.closing.Do(func() {
		l.ring.close()
		l.poke()
	})
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("access log: lines are left unwritten: %w", ctx.Err())
	}
}
