package affinity

import (
	"fmt"
	"os"
	"runtime"
	"sync"
)

// Launcher starts other processes where a [Placement] says, by starting them
// on a thread that is there: a child inherits the mask and the memory policy
// of the thread that forked it, and keeps both when it starts a program.
//
// All are started by one OS thread, which lives until [Launcher.Close]. That
// is what makes it right to start them with PR_SET_PDEATHSIG
// ([syscall.SysProcAttr].Pdeathsig): the kernel sends that signal when the
// thread that forked ends, not the process, and Go ends threads when it
// likes.
//
// Its methods may be called by any goroutine.
type Launcher struct {
	calls chan launch   // to the goroutine that owns the thread
	stop  func()        // tells it to end; more than once is fine
	ended chan struct{} // closed when it has
}

type launch struct {
	placement Placement
	start     func() error
	result    chan<- error
}

// NewLauncher starts the thread. The caller must Close the Launcher.
func NewLauncher() *Launcher {
	stopped := make(chan struct{})
	l := &Launcher{
		calls: make(chan launch),
		stop:  sync.OnceFunc(func() { close(stopped) }),
		ended: make(chan struct{}),
	}
	go l.run(stopped)
	return l
}

// Do calls start on the Launcher's thread, with the mask and memory policy of
// p in force, and returns its error. Afterwards, also when start fails, the
// thread has what it had before. One call runs at a time, others wait.
//
// What start starts by [os/exec.Cmd.Start] or [os.StartProcess] inherits p;
// goroutines it starts do not. start must not call Do or Close, which would
// wait for itself, nor wait for the child.
//
// p.CPUs may name only CPUs of [Allowed]: the error is otherwise a
// [*NotAllowedError], or [ErrEmptySet]. After Close it is [os.ErrClosed]. In
// neither case is start called. Only if the thread could not be restored is
// there an error although start succeeded and what it started runs.
func (l *Launcher) Do(p Placement, start func() error) error {
	result := make(chan error, 1)
	select {
	case l.calls <- launch{p, start, result}:
	case <-l.ended:
		return fmt.Errorf("launcher: %w", os.ErrClosed)
	}
	select {
	case err := <-result:
		return err
	case <-l.ended: // start ended its goroutine, or Close came right after it
	}
	select {
	case err := <-result:
		return err
	default:
		return fmt.Errorf("launcher: start did not return: %w", os.ErrClosed)
	}
}

// Close waits for a running Do and ends the thread. Children started with
// PR_SET_PDEATHSIG get their signal, so Close when they have ended, or should.
func (l *Launcher) Close() {
	l.stop()
	<-l.ended
}

func (l *Launcher) run(stopped <-chan struct{}) {
	// Never unlocked: when this goroutine ends, so does the thread, with
	// whatever mask it may have. While it is locked, the runtime makes no
	// thread from it, so nothing but children inherits from it.
	runtime.LockOSThread()
	defer close(l.ended)
	for {
		select {
		case c := <-l.calls:
			c.result <- c.run()
		case <-stopped:
			return
		}
	}
}
