package cell

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"syscall"
	"time"

	"pinion/affinity"
	"pinion/internal/stats"
)

// Supervisor starts cells and keeps them running. Its methods are safe for
// concurrent use.
type Supervisor struct {
	cfg    Config
	log    *slog.Logger
	launch func(p affinity.Placement, start func() error) error
	hub    hub
	cells  []*cell

	stopping chan struct{} // closed by the first Stop

	mu      sync.Mutex // guards the cells too; never held while something is written
	ran     bool
	failure error // the first one
}

// New returns a Supervisor for the cells of cfg. It starts nothing; metrics and
// Cells work from now on.
func New(cfg Config) *Supervisor {
	log, registry := cfg.Log, cfg.Stats
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if registry == nil {
		registry = stats.NewRegistry(1)
	}
	s := &Supervisor{cfg: cfg, log: log, stopping: make(chan struct{})}
	s.hub = hub{
		timeout: cfg.RelayTimeout, log: log,
		relayed: registry.Counter("cell_removals_total",
			"Cache entries that cells asked the others to remove, as one of them wrote.").With(),
	}
	up := registry.Gauge("cell_up", "1 if the cell is ready and serves, else 0.", "cell")
	restarts := registry.Counter("cell_restarts_total", "How often the cell was started again after it had ended.", "cell")
	for i, spec := range cfg.Specs {
		c := newCell(spec, restarts.With(strconv.Itoa(i)))
		s.cells = append(s.cells, c)
		up.Func(func() float64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			if c.state == Ready {
				return 1
			}
			return 0
		}, strconv.Itoa(i))
	}
	return s
}

// Run starts cell 0, then, when it is ready, the others, and keeps them running until
// ctx ends or Stop is called. It then waits for all to end, and kills those that take
// longer than Config says. No cell is left when it returns, and it can be called
// once.
//
// It returns nil if it was stopped and every cell ended with status 0. It returns an
// [*ExitError] if a cell ended before it was ever ready, ended too often, or did not
// end well in the end; in the first two cases the others were drained.
func (s *Supervisor) Run(ctx context.Context) error {
	files, err := s.prepare()
	defer func() {
		for _, f := range files {
			f.remove()
		}
	}()
	if err != nil {
		return err
	}
	s.launch = s.cfg.Launch
	if s.launch == nil {
		launcher := affinity.NewLauncher()
		defer launcher.Close() // the cells end with its thread
		s.launch = launcher.Do
	}
	defer context.AfterFunc(ctx, s.Stop)()

	over := make(chan struct{})
	defer close(over)
	go s.killLate(over)

	var all sync.WaitGroup
	for i, c := range s.cells {
		all.Go(func() { s.keep(c) })
		if i == 0 {
			select {
			case <-c.ready:
			case <-c.done: // and so the others will not start
			}
		}
	}
	all.Wait()
	s.Stop() // closes the sockets, if there was no cell to be waited for
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// prepare completes the configuration and takes the listeners over, in any case. It
// returns their files.
func (s *Supervisor) prepare() (files []socketFile, err error) {
	s.mu.Lock()
	ran := s.ran
	s.ran = true
	s.mu.Unlock()
	if ran {
		return nil, errors.New("a supervisor runs once")
	}
	if s.cfg, err = s.cfg.withDefaults(); err != nil {
		err = fmt.Errorf("cells: %w", err)
	}
	s.hub.timeout = s.cfg.RelayTimeout
	all := make([]sockets, len(s.cells))
	for i, c := range s.cells {
		if err == nil {
			all[i], err = newSockets(c.spec.Listeners)
		}
	}
	// Only now, since several cells may share a listener.
	for _, c := range s.cells {
		for _, ln := range c.spec.Listeners {
			if file, ok := closeListener(ln); ok {
				files = append(files, file)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.cells {
		if err == nil && !s.stopped() {
			c.sockets = all[i]
		} else {
			all[i].close()
		}
	}
	return files, err
}

// Stop asks all cells to end, by SIGTERM, and has Run return when they have. Each
// further call sends the signal again, which ends a cell at once that has restored
// its default. It does not wait.
func (s *Supervisor) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped() {
		close(s.stopping)
	}
	for _, c := range s.cells {
		// The cells close theirs when they no longer accept. If ours were still open,
		// connections would go on to wait where nobody reads.
		c.sockets.close()
		c.sockets = nil
		if c.life != nil {
			c.state = Draining
			c.life.signal(syscall.SIGTERM)
		}
	}
}

// stopped reports whether Stop was called.
func (s *Supervisor) stopped() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// killLate kills what has not ended in time after Stop; over ends it.
func (s *Supervisor) killLate(over <-chan struct{}) {
	select {
	case <-s.stopping:
	case <-over:
		return
	}
	late := time.NewTimer(s.cfg.DrainTimeout + s.cfg.DrainMargin)
	defer late.Stop()
	select {
	case <-late.C:
	case <-over:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.cells {
		if c.life != nil {
			c.life.signal(syscall.SIGKILL)
		}
	}
}

// setState notes what c is doing when it has no process.
func (s *Supervisor) setState(c *cell, state State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.state = state
}

// fail has Run return err, unless something failed before.
func (s *Supervisor) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		s.failure = err
	}
}
