package cell

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"pinion/affinity"
)

// TestFiles: each process of a cell reads a file from its start, though it has no name.
func TestFiles(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // nothing is to be kept
	if _, err := file.WriteString("what the supervisor read"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file.Name()); err != nil {
		t.Fatal(err)
	}
	f := startFleet(t, 2, behaviour{}, func(c *Config) { c.Files = []*os.File{file} })
	restart(t, f, 1)
	for i := range 2 {
		if got := f.self(t, i); got.File != "what the supervisor read" || got.Listeners != 1 {
			t.Errorf("cell %d: %+v", i, got)
		}
	}
}

// restart kills a cell and waits until it is back.
func restart(t *testing.T, f *fleet, cell int) {
	t.Helper()
	before := f.Cells()[cell]
	kill(t, before.PID, syscall.SIGKILL)
	f.await(t, "the cell is back", func(all []Status) bool {
		return all[cell].Restarts > before.Restarts && all[cell].State == Ready
	})
}

// TestLostCPUs takes CPUs away while a cell is down, and gives them back.
func TestLostCPUs(t *testing.T) {
	cpus, err := affinity.Allowed()
	if err != nil {
		t.Fatal(err)
	}
	if cpus.Len() < 2 {
		if os.Getenv("CI") != "" {
			t.Fatal("needs two CPUs")
		}
		t.Skip("needs two CPUs")
	}
	first, _ := cpus.Min()
	left := affinity.SetOf(first)
	var lost atomic.Bool
	launcher := affinity.NewLauncher()
	t.Cleanup(launcher.Close)
	f := startFleet(t, 2, behaviour{}, func(c *Config) {
		c.Specs[0].Placement.CPUs = left
		c.Launch = func(p affinity.Placement, start func() error) error {
			if gone := p.CPUs.Difference(left); lost.Load() && !gone.Empty() {
				return &affinity.NotAllowedError{CPUs: gone, Allowed: left}
			}
			return launcher.Do(p, start)
		}
	})
	lost.Store(true)
	restart(t, f, 1)
	if got := f.self(t, 1); got.Placement != left.String() || got.Allowed != left.String() {
		t.Errorf("told CPUs %s, runs on %s, want %v", got.Placement, got.Allowed, left)
	}
	f.log.index(t, `msg="a cell has lost CPUs" cell=1`)
	lost.Store(false)
	restart(t, f, 1)
	if got := f.self(t, 1); got.Allowed != cpus.String() {
		t.Errorf("runs on %s, want %v again", got.Allowed, cpus)
	}
}
