package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// Fleet is what the private port of a supervisor knows of its cells, each of which
// serves a private port of its own.
type Fleet struct {
	// Cells tells how every cell is, ascending by number. It is called for each
	// request, from several goroutines at once.
	Cells func() []CellStatus
	// Dial opens a connection to the private port of a cell. It returns soon after ctx
	// has ended, and is called from several goroutines at once.
	Dial func(ctx context.Context, cell int) (net.Conn, error)
}

// CellStatus is a cell at one moment.
type CellStatus struct {
	Cell     int    // its number
	PID      int    // 0: it has no process
	State    string // one of the constants below, or another word for a cell that serves nothing
	Restarts int
	LastExit string // how its last process ended; "": none has
}

// States of a cell in which its private port should answer, StateStarting once it is
// open.
const (
	StateStarting = "starting"
	StateReady    = "ready"
	StateDraining = "draining"
)

// answers reports whether the cell's private port can be asked.
func (c CellStatus) answers() bool {
	return c.State == StateStarting || c.State == StateReady || c.State == StateDraining
}

// What a cell may take to answer.
const (
	probeTimeout  = 2 * time.Second
	scrapeTimeout = 5 * time.Second // half of what Prometheus itself waits by default
)

// maxCellHeaderBytes bounds the header of a cell's answer.
const maxCellHeaderBytes = 64 << 10

// fleet asks the cells.
type fleet struct {
	Fleet
	transport *http.Transport
	log       *slog.Logger

	probeTimeout, scrapeTimeout time.Duration
}

func newFleet(cfg *Fleet, log *slog.Logger) *fleet {
	return &fleet{
		Fleet: *cfg,
		transport: &http.Transport{
			DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
				host, _, err := net.SplitHostPort(addr)
				if err != nil {
					return nil, err
				}
				cell, err := strconv.Atoi(host)
				if err != nil {
					return nil, err
				}
				// net/http goes on dialing for a request that is gone.
				ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
				defer cancel()
				return cfg.Dial(ctx, cell)
			},
			// A connection costs no more than a request, and none is left to a process
			// that ends.
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxCellHeaderBytes,
		},
		log:           log,
		probeTimeout:  probeTimeout,
		scrapeTimeout: scrapeTimeout,
	}
}

// cellURL is what the transport takes for a cell: its number is the host.
func cellURL(cell int, path string) *url.URL {
	return &url.URL{Scheme: "http", Host: strconv.Itoa(cell), Path: path}
}

// get asks a cell for a page. The caller closes the body.
func (f *fleet) get(ctx context.Context, cell int, path, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, cellURL(cell, path).String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	return f.transport.RoundTrip(req)
}

// find returns the cell of that number.
func (f *fleet) find(cell int) (CellStatus, bool) {
	cells := f.Cells()
	i := slices.IndexFunc(cells, func(c CellStatus) bool { return c.Cell == cell })
	if i < 0 {
		return CellStatus{}, false
	}
	return cells[i], true
}

// still reports whether what a cell failed to do counts: the process that was asked is
// there and should have answered.
func (f *fleet) still(asked CellStatus) bool {
	now, ok := f.find(asked.Cell)
	return ok && now.answers() && now.PID == asked.PID
}

// each runs ask for all cells at once, and returns what came of each.
func each[T any](cells []CellStatus, ask func(CellStatus) T) []T {
	results := make([]T, len(cells))
	var wg sync.WaitGroup
	for i, c := range cells {
		wg.Go(func() { results[i] = ask(c) })
	}
	wg.Wait()
	return results
}

// numbers lists the cells that there are, for a person.
func (f *fleet) numbers() string {
	var all []string
	for _, c := range f.Cells() {
		all = append(all, strconv.Itoa(c.Cell))
	}
	if len(all) == 0 {
		return "there are none"
	}
	return "there are " + strings.Join(all, ", ")
}

const fleetIndex = `
This is the supervisor of the cells below. /metrics shows the series of all of them, with
the label cell; /health and /ready speak for all of them. With ?cell=N a page is that of
one cell, e.g. /debug/pprof/profile?cell=0&seconds=10; without it, profiles are those of
the supervisor, which serves no users. Links on a cell's page lack the cell=N.

`

// index lists the cells.
func (f *fleet) index() string {
	var b strings.Builder
	b.WriteString(fleetIndex)
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprint(w, "cell\tstate\tpid\trestarts\tlast exit\n")
	for _, c := range f.Cells() {
		pid, exit := "-", "-"
		if c.PID != 0 {
			pid = strconv.Itoa(c.PID)
		}
		if c.LastExit != "" {
			exit = c.LastExit
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%s\n", c.Cell, c.State, pid, c.Restarts, exit)
	}
	_ = w.Flush() // a strings.Builder takes all
	return b.String()
}

// errNoAnswer is what a deadline of ours says.
var errNoAnswer = errors.New("no answer in time")

// plain takes what only repeats the request out of an error of get.
func plain(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return errNoAnswer
	}
	return err
}

// cellError says which cell it was.
func cellError(cell int, err error) error { return fmt.Errorf("cell %d: %w", cell, plain(err)) }
