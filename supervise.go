package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"

	"pinion/affinity"
	"pinion/engine"
	"pinion/internal/admin"
	"pinion/internal/cell"
	"pinion/internal/config"
	"pinion/internal/listen"
	"pinion/internal/stats"
	"pinion/users/sqldb"
)

// errOneProcess refuses a database that only one process can see.
var errOneProcess = errors.New("sqlite::memory: belongs to one process, and there would be several: use -cells off, or a file")

// supervise runs the cells until a signal ends them.
func supervise(s *server, until func() (context.Context, func()), args []string) error {
	if sqldb.InMemory(s.cfg.DB) {
		return s.cfg.Wrong("db", errOneProcess)
	}
	stop, restore := until()
	defer restore()
	runtime.GOMAXPROCS(min(2, runtime.GOMAXPROCS(0))) // the CPUs are for the cells
	reg := stats.NewRegistry(1)
	reg.Counter("log_dropped_total", logDroppedHelp).Func(s.sink.Dropped)
	lns, err := openCells(stop, s.cfg, s.place.cells)
	if err != nil {
		return err
	}
	steer(s.cfg.Steer, s.place, lns, reg, s.log)
	environ, files, err := handOver(s.cfg)
	if err != nil {
		return err
	}
	defer closeAll(files)
	// Cells are no foreground job, but may write to the terminal like one.
	signal.Ignore(syscall.SIGTTOU)
	cells := cell.New(cell.Config{
		Specs: specs(s.place.cells, lns, s.log),
		// The arguments are what ps shows. What counts is the environment: a file that
		// was edited must not make a cell that is started again another one.
		Args: args, Env: environ, Files: files,
		DrainTimeout: s.cfg.DrainDelay + s.cfg.DrainTimeout + 2*lastWords, Log: s.log, Stats: reg,
	})
	if s.cfg.Admin == "" {
		return cells.Run(stop)
	}
	port := admin.New(admin.Config{
		Addr: s.cfg.Admin, Stats: reg, Version: version, Log: s.log,
		Fleet: &admin.Fleet{Cells: func() []admin.CellStatus { return statusOf(cells) }, Dial: cells.Dial},
	})
	if err := port.Listen(stop); err != nil {
		for _, ln := range slices.Concat(lns...) {
			_ = ln.Close() // and removes the socket file
		}
		return err
	}
	s.log.Info("private port open", "addr", port.Addr())
	// Nobody can watch a server whose private port has failed: then it drains.
	watched, end := context.WithCancel(stop)
	served := make(chan error, 1)
	go func() {
		defer end()
		served <- port.Serve()
	}()
	err = cells.Run(watched)
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	if err := port.Shutdown(ctx); err != nil {
		s.log.Warn("closing", "error", err)
	}
	return errors.Join(err, <-served)
}

// handOver puts the configuration into the environment of the cells, and the file of
// tokens into one without a name that they inherit: one that is started again must
// know what the others know. The files are the caller's to close.
func handOver(cfg *config.Config) (environ []string, files []*os.File, err error) {
	theirs := *cfg
	if cfg.Tokens != "" {
		text, err := os.ReadFile(cfg.Tokens)
		if err != nil {
			return nil, nil, cfg.Wrong("tokens", err)
		}
		f, err := os.CreateTemp("", "pinion-tokens-")
		if err != nil {
			return nil, nil, fmt.Errorf("copy the tokens for the cells: %w", err)
		}
		_, err = f.Write(text)
		if err = errors.Join(err, os.Remove(f.Name())); err != nil {
			_ = f.Close()
			return nil, nil, fmt.Errorf("copy the tokens for the cells: %w", err)
		}
		files = append(files, f)
		theirs.Tokens = cell.FilePath(0)
	}
	return theirs.Environ(os.Environ()), files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // nothing of it is to be kept
	}
}

// statusOf puts what the supervisor knows in the words of the private port.
func statusOf(cells *cell.Supervisor) []admin.CellStatus {
	var all []admin.CellStatus
	for _, c := range cells.Cells() {
		all = append(all, admin.CellStatus{
			Cell: c.Cell, PID: c.PID, State: c.State.String(), Restarts: c.Restarts, LastExit: c.LastExit,
		})
	}
	return all
}

// specs tells what each cell is to be.
func specs(cells []affinity.Cell, lns [][]net.Listener, log *slog.Logger) []cell.Spec {
	all := make([]cell.Spec, len(cells))
	for i, c := range cells {
		all[i] = cell.Spec{
			Index: i, Share: c.Share, Listeners: lns[i],
			Placement: affinity.Placement{CPUs: c.CPUs, Memory: c.Memory},
		}
		log.Info("cell planned", "cell", i, "cpus", c.CPUs, "gomaxprocs", c.GOMAXPROCS, "memory", c.Memory, "reason", c.Reason)
	}
	return all
}

// openCells opens the public port for all cells: a listener for each loop, those of
// cell 0 first, in one group of the kernel's.
func openCells(ctx context.Context, cfg *config.Config, cells []affinity.Cell) ([][]net.Listener, error) {
	addr, err := listen.Parse(cfg.Addr)
	if err != nil {
		return nil, cfg.Wrong("addr", err)
	}
	lns := make([][]net.Listener, len(cells))
	if addr.Unix() {
		ln, err := addr.Listen(ctx)
		for i := range lns {
			lns[i] = []net.Listener{ln} // they take turns
		}
		return lns, err
	}
	all := 0
	counts := make([]int, len(cells))
	for i, c := range cells {
		if counts[i] = 1; cfg.Engine == config.EngineLoop {
			counts[i] = c.GOMAXPROCS
		}
		all += counts[i]
	}
	group, err := engine.Listen(addr.String(), all)
	if err != nil {
		return nil, err
	}
	for i, n := range counts {
		lns[i], group = group[:n:n], group[n:]
	}
	return lns, nil
}
