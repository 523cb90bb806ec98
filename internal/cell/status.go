package cell

// State is what a cell is doing.
type State int

// The states of a cell.
const (
	Gone       State = iota // it has no process and will not get one, or not before Run starts it
	Starting                // its process has not said yet that it is ready
	Ready                   // it serves
	Draining                // it was asked to end, or says that it does
	Restarting              // its process ended, and another will be started
)

// String is the name of the state in lower case.
func (s State) String() string {
	switch s {
	case Gone:
		return "gone"
	case Starting:
		return "starting"
	case Ready:
		return "ready"
	case Draining:
		return "draining"
	case Restarting:
		return "restarting"
	}
	return "unknown"
}

// Status is a cell at one moment.
type Status struct {
	Cell     int
	PID      int // 0: it has no process
	State    State
	Restarts int
	LastExit string // how its last process ended, as "exit status 1"; empty: none has
}

// Cells tells how every cell is, in their order. It is safe for concurrent use.
func (s *Supervisor) Cells() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Status, len(s.cells))
	for i, c := range s.cells {
		all[i] = Status{Cell: i, State: c.state, Restarts: c.restarts, LastExit: c.lastExit}
		if c.life != nil {
			all[i].PID = c.life.process.Pid
		}
	}
	return all
}
