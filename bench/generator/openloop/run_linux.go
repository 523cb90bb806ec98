package openloop

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Run connects, warms up and measures. It returns an error, and no result, if the server
// cannot be reached at the start, if it answers what cannot be framed (ErrMalformed and
// the others), or if ctx ends; what goes wrong with single requests later is counted. If
// the process of the server ends while it is measured, the error is ErrEnded, and there is
// a result of what was due until then.
//
// It takes a CPU for each thread. GOMAXPROCS should be one more.
func Run(ctx context.Context, c Config) (*Result, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	var halt atomic.Bool
	defer context.AfterFunc(ctx, func() { halt.Store(true) })()
	r := run{c: &c, base: time.Now(), halt: &halt, begin: make(chan struct{}), warm: make(chan error, c.Threads), done: make(chan error, c.Threads)}
	defer r.wait.Wait()
	defer halt.Store(true) // before the wait
	for thread := range c.Threads {
		l, err := newLoop(&c, thread, r.base)
		if err != nil {
			close(r.begin)
			return nil, err
		}
		l.halt = &halt
		r.loops = append(r.loops, l)
		r.wait.Go(func() { r.thread(l) })
	}
	result, err := r.result()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return result, err
}

// run is a Run.
type run struct {
	c     *Config
	base  time.Time
	halt  *atomic.Bool
	loops []*loop
	wait  sync.WaitGroup

	start      time.Duration
	begin      chan struct{} // closed when start is set
	warm, done chan error    // one of each loop
}

// thread is what the thread of a loop does.
func (r *run) thread(l *loop) {
	// Never unlocked: the thread ends with the goroutine, and its timer slack with it.
	runtime.LockOSThread()
	defer l.close()
	// Sleeps end when they should, and not up to 50 µs later: PR_SET_TIMERSLACK(2const).
	err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	if err == nil {
		err = l.open()
	}
	if err == nil {
		err = l.warm()
	}
	r.warm <- err
	<-r.begin
	if err == nil {
		err = l.measure(r.start, r.c.Duration)
	}
	r.done <- err
}

// gather waits for all loops. The first that fails stops the others.
func (r *run) gather(from <-chan error) (err error) {
	for range r.loops {
		e := <-from
		if e == nil {
			continue
		}
		r.halt.Store(true)
		if err == nil || errors.Is(err, context.Canceled) {
			err = e
		}
	}
	return err
}

func (r *run) result() (*Result, error) {
	err := r.gather(r.warm)
	var began, own time.Duration
	if err == nil {
		own, err = processCPU(unix.Getpid())
	}
	if err == nil && r.c.PID != 0 {
		began, err = processCPU(r.c.PID)
	}
	if err != nil {
		r.halt.Store(true)
		close(r.begin)
		return nil, err
	}
	// A moment for all threads to wake up.
	r.start = time.Since(r.base) + time.Millisecond
	close(r.begin)
	err = r.gather(r.done)
	var server *float64
	if err == nil && r.c.PID != 0 {
		var ended time.Duration
		if ended, err = processCPU(r.c.PID); err == nil {
			server = new((ended - began).Seconds())
		} else if errors.Is(err, unix.ESRCH) {
			err = ErrEnded
		}
	}
	if err != nil && !errors.Is(err, ErrEnded) {
		return nil, err
	}
	total, e := processCPU(unix.Getpid())
	if e != nil {
		return nil, e
	}
	res := r.sum()
	res.CPU, res.ServerCPU = (total - own).Seconds(), server
	if err != nil {
		err = fmt.Errorf("process %d, after %.2f s: %w", r.c.PID, res.Seconds, err)
	}
	return res, err
}

// sum adds up what the loops counted.
func (r *run) sum() *Result {
	main, beside := newTally(), newTally()
	var finish, waited, preempted, looped time.Duration
	for _, l := range r.loops {
		main.merge(&l.main.tally)
		if l.beside != nil {
			beside.merge(&l.beside.tally)
		}
		finish = max(finish, l.finish)
		waited += l.waited
		preempted += l.preempted
		looped += l.finish - r.start
	}
	seconds := (finish - r.start).Seconds()
	if r.c.Rate == 0 {
		main.due = main.sent
	}
	busy := max(0, 1-waited.Seconds()/looped.Seconds())
	lost := preempted.Seconds() / looped.Seconds()
	share := main.share(preempted / time.Duration(len(r.loops)))
	res := &Result{
		URL: r.c.URL, Conns: r.c.Conns, Shape: r.c.Shape, Seed: r.c.Seed,
		Rate: r.c.mean(), Achieved: float64(main.answered) / seconds,
		Due: main.due, Requests: main.answered, Seconds: seconds,
		Latency: latencyOf(main.latency), Errors: main.errors, Busy: busy, Preempted: lost,
		OwnLag:    main.ownLag(share),
		Histogram: main.latency, LagHistogram: main.lag,
	}
	res.KeptUp, res.Reason = main.verdict(busy, lost, share)
	if r.c.Beside != "" {
		res.Beside = &Beside{Requests: beside.answered, Seconds: seconds, Errors: beside.errors, Latency: latencyOf(beside.latency)}
	}
	return res
}
