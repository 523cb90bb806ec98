package cell

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"pinion/affinity"
	"pinion/internal/stats"
)

// Spec is one cell as it is to be.
type Spec struct {
	Index     int                // its place in Config.Specs
	Placement affinity.Placement // the CPUs it runs on and the nodes its memory comes from
	Share     float64            // of the cgroup's CPU quota, above 0 to 1; told to the cell

	// Listeners are the cell's. Run takes them over: it closes them, keeps their
	// sockets, and removes socket files at its end. Several cells may share one.
	Listeners []net.Listener
}

// Config is what New needs. Only Specs has no default.
type Config struct {
	Specs []Spec

	// Path is the program of the cells. Default: the one that runs, as affinity.Executable
	// finds it at each start, also after its file was deleted or replaced.
	Path           string
	Args           []string   // its arguments, without its name
	Env            []string   // default os.Environ
	Files          []*os.File // open in each cell, see FilePath; they stay the caller's
	Stdout, Stderr *os.File   // default os.Stdout, os.Stderr; the standard input is empty

	// DrainTimeout is how long cells may take to end after they were asked to; those
	// left when DrainMargin has passed as well are killed. 30 s and 5 s by default.
	DrainTimeout, DrainMargin time.Duration

	// RelayTimeout is how long a cell may take to confirm a removal, and to end after
	// Member.Close, before it is killed. Default 2 s. See the package on how long that can
	// hold up Member.Announce.
	RelayTimeout time.Duration

	Restart Restart

	// Launch runs start such that a process started in it has the placement. Default: an
	// affinity.Launcher that Run makes and closes.
	Launch func(p affinity.Placement, start func() error) error

	Log   *slog.Logger    // default: none
	Stats *stats.Registry // default: none
}

// Restart says when a cell that ended is started again.
type Restart struct {
	Min    time.Duration // the wait after the first end; default 100 ms
	Max    time.Duration // the wait doubles up to this; default 10 s
	Stable time.Duration // a cell that ran that long starts from Min again; default 1 min
	Limit  int           // so many ends within Window are borne; default 5, negative: none
	Window time.Duration // default 1 min
}

// withDefaults fills what is zero.
func (c Config) withDefaults() (Config, error) {
	for i, spec := range c.Specs {
		if spec.Index != i {
			return c, fmt.Errorf("cell %d is at place %d of the list", spec.Index, i)
		}
	}
	if c.Env == nil {
		c.Env = os.Environ()
	}
	if c.Stdout == nil {
		c.Stdout = os.Stdout
	}
	if c.Stderr == nil {
		c.Stderr = os.Stderr
	}
	orDuration(&c.DrainTimeout, 30*time.Second)
	orDuration(&c.DrainMargin, 5*time.Second)
	orDuration(&c.RelayTimeout, 2*time.Second)
	orDuration(&c.Restart.Min, 100*time.Millisecond)
	orDuration(&c.Restart.Max, 10*time.Second)
	orDuration(&c.Restart.Stable, time.Minute)
	orDuration(&c.Restart.Window, time.Minute)
	if c.Restart.Limit == 0 {
		c.Restart.Limit = 5
	}
	return c, nil
}

func orDuration(d *time.Duration, otherwise time.Duration) {
	if *d <= 0 {
		*d = otherwise
	}
}
