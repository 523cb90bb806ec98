package cell

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestAnnounce(t *testing.T) {
	f := startFleet(t, 3, behaviour{Slow: 10 * time.Millisecond}, nil)
	for i := range 3 {
		f.mustAsk(t, i, "/announce?id=%d", 100+i)
		for j := range 3 {
			want := fmt.Sprint(j != i)
			if got := f.mustAsk(t, j, "/removed?id=%d", 100+i); got != want {
				t.Errorf("after cell %d announced: removed by cell %d: %s, want %s", i, j, got, want)
			}
		}
	}
}

// TestConfirmedIsRemoved looks from the outside: what comes over the control
// socket is looked at after the removal in any case.
func TestConfirmedIsRemoved(t *testing.T) {
	f := startFleet(t, 2, behaviour{Slow: 300 * time.Millisecond}, nil)
	f.mustAsk(t, 0, "/announce?id=1")
	if got, err := getPublic(f.addrs[1] + "/calls"); err != nil || got != "1" {
		t.Errorf("removals when they were confirmed: %s, %v", got, err)
	}
}

func TestAnnounceAlone(t *testing.T) {
	f := startFleet(t, 1, behaviour{}, nil)
	f.mustAsk(t, 0, "/announce?id=1")
}

// TestAnnounceBursts has cells announce to each other as fast as they can: nobody may
// wait for a reader that waits for him.
func TestAnnounceBursts(t *testing.T) {
	const n = 20_000
	for _, c := range []struct{ cells, callers int }{{2, 1000}, {4, 20_000}, {3, 16}} {
		t.Run(fmt.Sprintf("%d cells, %d callers", c.cells, c.callers), func(t *testing.T) {
			f := startFleet(t, c.cells, behaviour{}, func(cfg *Config) { cfg.RelayTimeout = patience })
			ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
			defer cancel()
			errs := make(chan error, c.cells)
			for i := range c.cells {
				go func() {
					_, err := f.ask(t, i, "/burst?base=%d&n=%d&callers=%d", i*n, n, c.callers)
					errs <- err
				}()
			}
			for range c.cells {
				select {
				case err := <-errs:
					if err != nil {
						t.Error(err)
					}
				case <-ctx.Done():
					t.Fatal("deadlock")
				}
			}
			others := (c.cells - 1) * n
			want := fmt.Sprintf("%d in %d calls", others, others)
			for i := range c.cells {
				if got := f.mustAsk(t, i, "/removed"); got != want {
					t.Errorf("cell %d removed %s, want %s", i, got, want)
				}
			}
		})
	}
}

func TestStoppedCellIsKilled(t *testing.T) {
	const timeout = 500 * time.Millisecond
	f := startFleet(t, 3, behaviour{}, func(c *Config) { c.RelayTimeout = timeout })
	kill(t, f.Cells()[2].PID, syscall.SIGSTOP)
	began := time.Now()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if _, err := f.ask(t, i%2, "/announce?id=%d", i); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if d := time.Since(began); d < timeout {
		t.Errorf("confirmed after %v by a cell that was stopped", d)
	}
	after := f.await(t, "the cell is back", func(all []Status) bool { return all[2].Restarts == 1 && all[2].State == Ready })
	if after[2].LastExit != "signal: killed" || after[0].Restarts+after[1].Restarts != 0 {
		t.Errorf("cells %+v", after)
	}
	f.log.index(t, `msg="a cell is killed: it did not confirm a removal in time" cell=2`)
	f.mustAsk(t, 0, "/announce?id=77")
	if got := f.mustAsk(t, 2, "/removed?id=77"); got != "true" {
		t.Error("the new process hears of nothing")
	}
}

func TestUnrulyCellIsKilled(t *testing.T) {
	f := startFleet(t, 2, behaviour{}, nil)
	_, _ = f.ask(t, 1, "/nonsense") // its answer may be cut off
	f.await(t, "the cell is back", func(all []Status) bool { return all[1].Restarts == 1 && all[1].State == Ready })
	f.log.index(t, `msg="a cell is killed: reading from it failed" cell=1`)
	f.mustAsk(t, 0, "/announce?id=1")
}

// TestAnnounceGoesOn has the caller leave before the others have confirmed.
func TestAnnounceGoesOn(t *testing.T) {
	f := startFleet(t, 2, behaviour{}, func(c *Config) { c.RelayTimeout = patience })
	pid := f.Cells()[1].PID
	kill(t, pid, syscall.SIGSTOP)
	f.mustAsk(t, 0, "/impatient?id=5")
	f.mustAsk(t, 0, "/impatient?id=6") // waits for the packet before it
	kill(t, pid, syscall.SIGCONT)
	for _, id := range []int{5, 6} {
		eventually(t, "the removal has arrived", func() bool { return f.mustAsk(t, 1, "/removed?id=%d", id) == "true" })
	}
	if n := f.Cells()[1].Restarts; n != 0 {
		t.Errorf("%d restarts", n)
	}
}

// TestDeadCellFlushesTheOthers: it may have committed what it did not live to announce.
func TestDeadCellFlushesTheOthers(t *testing.T) {
	f := startFleet(t, 3, behaviour{}, func(c *Config) { c.RelayTimeout = patience })
	flushes := func(cell int) string { return f.mustAsk(t, cell, "/flushes") }
	kill(t, f.Cells()[2].PID, syscall.SIGKILL)
	for i := range 2 {
		eventually(t, "the cell is told", func() bool { return flushes(i) == "1" })
	}
	f.await(t, "the cell is back", func(all []Status) bool { return all[2].Restarts == 1 && all[2].State == Ready })
	log := f.log.String()
	told := strings.Index(log, `msg="the other cells forget what they cached`)
	if again := strings.LastIndex(log, `msg="cell started" cell=2`); told < 0 || told > again {
		t.Error("the others were not told before the cell was started again")
	}
	// One that ends in order, or before it has joined, has nothing to hide.
	kill(t, f.Cells()[2].PID, syscall.SIGTERM)
	f.await(t, "the cell is back", func(all []Status) bool { return all[2].Restarts == 2 && all[2].State == Ready })
	f.mustAsk(t, 2, "/announce?id=1") // what came before it has been confirmed
	for i, want := range []string{"1", "1", "0"} {
		if got := flushes(i); got != want {
			t.Errorf("cell %d was told %s times, want %s", i, got, want)
		}
	}
}

// TestUnflushedCellIsKilled: it might answer what has been overwritten.
func TestUnflushedCellIsKilled(t *testing.T) {
	f := startFleet(t, 3, behaviour{}, func(c *Config) { c.RelayTimeout = 300 * time.Millisecond })
	kill(t, f.Cells()[1].PID, syscall.SIGSTOP)
	kill(t, f.Cells()[2].PID, syscall.SIGKILL)
	f.await(t, "both are back", func(all []Status) bool {
		return all[1].Restarts == 1 && all[1].State == Ready && all[2].Restarts == 1 && all[2].State == Ready
	})
	if n := f.Cells()[0].Restarts; n != 0 {
		t.Errorf("cell 0 was restarted %d times", n)
	}
	f.log.index(t, `msg="a cell is killed: it did not confirm a removal in time" cell=1`)
}

func TestDialFails(t *testing.T) {
	f := startFleet(t, 1, behaviour{}, func(c *Config) { c.Restart.Min = time.Minute })
	for _, cell := range []int{-1, 1} {
		if _, err := f.Dial(t.Context(), cell); !errors.Is(err, ErrNotRunning) {
			t.Errorf("Dial(%d) = %v", cell, err)
		}
	}
	pid := f.Cells()[0].PID
	kill(t, pid, syscall.SIGSTOP)
	// A cell that reads nothing: its queue fills, then Dial waits.
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	before, err := descriptors("self")
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	for ; ; sent++ {
		conn, err := f.Dial(ctx, 0)
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Dial of a stopped cell = %v", err)
			}
			break
		}
		_ = conn.Close()
	}
	if sent == 0 {
		t.Error("no connection was sent")
	}
	for range 3 { // they wait for the one before them
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := f.Dial(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Dial of a stopped cell = %v", err)
		}
		cancel()
	}
	// The one that is being written has a descriptor left.
	if after, err := descriptors("self"); err != nil || after > before+1 {
		t.Errorf("%d descriptors, were %d, %v", after, before, err)
	}
	kill(t, pid, syscall.SIGKILL)
	f.await(t, "the cell is down", func(all []Status) bool { return all[0].State == Restarting })
	if _, err := f.Dial(t.Context(), 0); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Dial of a cell that is down = %v", err)
	}
}
