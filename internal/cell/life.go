package cell

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"pinion/affinity"
)

// life is one process of a cell.
type life struct {
	cell    *cell
	process *os.Process
	command *exec.Cmd
	control *control
	link    link
	ready   bool // it has said so; guarded by Supervisor.mu
}

// begin starts a process for c. The error is errStopped if the supervisor stops.
func (s *Supervisor) begin(c *cell) (*life, error) {
	files, err := s.listenersOf(c)
	if err != nil {
		return nil, err
	}
	defer closeFiles(files)
	ours, theirs, err := controlPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close() //nolint:errcheck // the process has a duplicate
	l := &life{cell: c}
	if l.control, err = newControl(ours, false); err != nil {
		return nil, err
	}
	if err = s.start(l, c.spec, slices.Concat([]*os.File{theirs}, s.cfg.Files, files)); err != nil {
		if l.command != nil && l.command.Process != nil { // started, but the launcher failed then
			_ = l.command.Process.Kill()
			_ = l.command.Wait()
		}
		_ = l.control.conn.Close() // nothing was sent
		return nil, fmt.Errorf("start cell %d: %w", c.spec.Index, err)
	}
	l.process = l.command.Process
	l.link = link{cell: c.spec.Index, out: newOutbox(), kill: func() { l.signal(syscall.SIGKILL) }}

	s.mu.Lock()
	defer s.mu.Unlock()
	c.life = l
	c.state = Starting
	if s.stopped() {
		c.state = Draining
		l.signal(syscall.SIGTERM)
	}
	return l, nil
}

// start starts the process where spec says, as far as that is still allowed: a cpuset
// that became smaller meanwhile must not end a server that goes on without the rest.
func (s *Supervisor) start(l *life, spec Spec, files []*os.File) (err error) {
	for {
		if l.command, err = s.cfg.command(spec); err != nil {
			return err
		}
		l.command.ExtraFiles = files
		err = s.launch(spec.Placement, l.command.Start)
		var lost *affinity.NotAllowedError
		if !errors.As(err, &lost) || l.command.Process != nil {
			return err
		}
		left := spec.Placement.CPUs.Intersect(lost.Allowed)
		if left.Empty() {
			left = lost.Allowed
		}
		if left.Empty() || left.Equal(spec.Placement.CPUs) {
			return err
		}
		s.log.Warn("a cell has lost CPUs", "cell", spec.Index, "lost", lost.CPUs, "cpus", left)
		spec.Placement.CPUs = left
	}
}

// command returns one that starts a process for spec.
func (c *Config) command(spec Spec) (*exec.Cmd, error) {
	path, name := c.Path, c.Path
	if path == "" {
		own, err := affinity.Executable()
		if err != nil {
			return nil, err
		}
		path, name = own, os.Args[0]
	}
	environ, err := spec.environ(len(c.Specs), len(c.Files))
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{
		Path: path, Args: append([]string{name}, c.Args...), Env: append(slices.Clone(c.Env), environ),
		Stdout: c.Stdout, Stderr: c.Stderr, SysProcAttr: attributes(),
	}, nil
}

// listenersOf returns duplicates of the cell's listening sockets.
func (s *Supervisor) listenersOf(c *cell) ([]*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped() { // they are closed
		return nil, errStopped
	}
	return c.sockets.files()
}

// run talks with the process until it has ended, and returns how it did.
func (s *Supervisor) run(l *life) *os.ProcessState {
	var talk sync.WaitGroup
	heard := make(chan struct{})
	talk.Go(func() {
		if err := l.link.out.run(l.control); err != nil {
			s.log.Error("a cell is killed: writing to it failed", "cell", l.link.cell, "error", err)
			l.link.kill()
		}
	})
	talk.Go(func() {
		defer close(heard)
		if err := s.listen(l); err != nil {
			s.log.Error("a cell is killed: reading from it failed", "cell", l.link.cell, "error", err)
			l.link.kill()
			l.control.discard() // until it is dead: others wait for it until then
		}
		s.hub.leave(&l.link)
	})
	talk.Go(func() {
		// A cell that hears of no more removals must not go on.
		<-heard
		late := time.AfterFunc(s.cfg.RelayTimeout, l.link.kill)
		defer late.Stop()
		<-l.link.out.done
	})

	_ = l.command.Wait() // what it could tell is in ProcessState

	// What the cell said before its end still counts; it is there to be read, unless
	// somebody else holds its end of the pair.
	_ = l.control.conn.SetReadDeadline(time.Now().Add(time.Second)) // fails if it has been read to the end
	<-heard
	l.link.out.close()
	_ = l.control.conn.Close() // nobody is at the other end
	talk.Wait()
	return l.command.ProcessState
}

// listen acts on what the cell says until it says no more.
func (s *Supervisor) listen(l *life) error {
	for {
		k, ids, _, err := l.control.receive()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ECONNRESET):
			return nil
		case err != nil:
			return err
		}
		switch k {
		case kindHello:
			s.hub.join(&l.link)
		case kindReady:
			s.becomeReady(l)
		case kindDraining:
			s.becomeDraining(l)
		case kindAnnounce:
			s.hub.announce(&l.link, slices.Clone(ids))
		case kindBye:
			s.hub.bye(&l.link)
		case kindConfirm:
			if !s.hub.confirm(&l.link) {
				return fmt.Errorf("%w: it was told to remove nothing", errPacket)
			}
		default:
			return fmt.Errorf("%w of kind %d", errPacket, k)
		}
	}
}

func (s *Supervisor) becomeReady(l *life) {
	s.mu.Lock()
	again, first := l.ready, l.cell.restarts == 0
	l.ready = true
	if l.cell.state == Starting {
		l.cell.state = Ready
	}
	s.mu.Unlock()
	if again {
		return
	}
	s.log.Info("cell ready", "cell", l.link.cell)
	if first {
		close(l.cell.ready) // after the line, so that the next cell's lines come after it
	}
}

func (s *Supervisor) becomeDraining(l *life) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.cell.state = Draining
}

// signal sends sig unless the process has ended.
func (l *life) signal(sig os.Signal) { _ = l.process.Signal(sig) }

// endedAsAsked reports whether a process that was asked to end did so. One that
// was not ready may not have had its own handler for the signal yet.
func (l *life) endedAsAsked() bool {
	state := l.command.ProcessState
	if state == nil { // somebody else waited for it
		return false
	}
	ws, ok := state.Sys().(syscall.WaitStatus)
	return state.Success() || !l.ready && ok && ws.Signaled() && ws.Signal() == syscall.SIGTERM
}
