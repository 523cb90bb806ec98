package cell

import (
	"errors"
	"fmt"
	"time"

	"pinion/internal/stats"
)

// cell is a cell through all its processes.
type cell struct {
	spec      Spec
	restarted *stats.Counter
	ready     chan struct{} // closed when its first process is ready
	done      chan struct{} // closed when it has no process and gets none any more

	// Guarded by Supervisor.mu.
	sockets  sockets
	state    State
	life     *life // nil: it has no process
	restarts int
	lastExit string
}

func newCell(spec Spec, restarted *stats.Counter) *cell {
	return &cell{
		spec: spec, restarted: restarted,
		ready: make(chan struct{}), done: make(chan struct{}),
	}
}

// wasReady reports whether a process of c ever was ready.
func (c *cell) wasReady() bool {
	select {
	case <-c.ready:
		return true
	default:
		return false
	}
}

// keep runs one process of c after the other until one of them ends everything, or
// Stop does.
func (s *Supervisor) keep(c *cell) {
	defer close(c.done)
	defer s.setState(c, Gone)
	log := s.log.With("cell", c.spec.Index)
	policy := restarts{rule: s.cfg.Restart}
	for {
		started := time.Now()
		exit := &ExitError{Cell: c.spec.Index}
		l, err := s.begin(c)
		if errors.Is(err, errStopped) {
			return
		}
		var status string
		if err != nil {
			status = err.Error()
		} else {
			log.Info("cell started", "pid", l.process.Pid)
			exit.Status = s.run(l)
			status = exit.Status.String()
		}
		s.noteEnd(c, status)
		if s.stopped() {
			log.Info("cell ended", "status", status)
			if l != nil && !l.endedAsAsked() {
				s.fail(exit)
			}
			return
		}

		now := time.Now()
		wait, again := policy.after(now.Sub(started), now)
		switch {
		case !c.wasReady():
			exit.Err = ErrNeverReady
		case !again:
			exit.Err = ErrTooOften
		}
		if exit.Err != nil {
			if err != nil {
				exit.Err = fmt.Errorf("%w: %w", exit.Err, err)
			}
			log.Error("cell ended", "status", status)
			s.fail(exit)
			s.Stop()
			return
		}
		log.Warn("cell ended", "status", status, "restart_in", wait)
		select {
		case <-time.After(wait):
		case <-s.stopping:
			return
		}
		s.noteRestart(c)
	}
}

// noteEnd notes that c has no process, and how its last one ended.
func (s *Supervisor) noteEnd(c *cell, status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.life, c.state, c.lastExit = nil, Restarting, status
	if s.stopped() {
		c.state = Gone
	}
}

// noteRestart counts one.
func (s *Supervisor) noteRestart(c *cell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.restarts++
	c.restarted.Add(0, 1)
}
