package affinity

import (
	"fmt"
	"strconv"
)

// maxCells bounds a wish before memory is taken for it. No machine has more
// NUMA nodes (NODES_SHIFT in arch/*/Kconfig).
const maxCells = 1024

// Cells says into how many cells [Topology.Plan] divides the CPUs. The zero
// value is "auto".
//
// Cells is a value: only [Cells.Set] and [Cells.UnmarshalText] change it.
// *Cells is a [flag.Value].
type Cells struct {
	n int // cells; 0 is auto
	// off is one cell too, and is written differently.
	off bool
}

// ParseCells reads "auto", "off" or a number from 1 to 1024.
func ParseCells(text string) (Cells, error) {
	switch text {
	case "auto":
		return Cells{}, nil
	case "off":
		return Cells{n: 1, off: true}, nil
	}
	n, reason := parseNumber(text)
	if reason != "" || n < 1 || n > maxCells {
		return Cells{}, fmt.Errorf("cells %q: want auto, off or a number from 1 to %d", text, maxCells)
	}
	return Cells{n: int(n)}, nil
}

// Count returns the number of cells if it is a fixed one, as for off, which is
// one. auto depends on the machine.
func (c Cells) Count() (n int, fixed bool) { return c.n, c.n > 0 }

// String returns what [ParseCells] reads back.
func (c Cells) String() string {
	switch {
	case c.off:
		return "off"
	case c.n == 0:
		return "auto"
	}
	return strconv.Itoa(c.n)
}

// MarshalText returns what [Cells.String] returns. The error is always nil.
func (c Cells) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText sets c to what [ParseCells] reads from text, and leaves c
// alone on an error.
func (c *Cells) UnmarshalText(text []byte) error { return c.Set(string(text)) }

// Set does the same for a string, as [flag.Value] wants it.
func (c *Cells) Set(text string) error {
	parsed, err := ParseCells(text)
	if err != nil {
		return err
	}
	*c = parsed
	return nil
}

// TooManyCellsError says that there are not CPUs enough for a CPU in each
// cell.
type TooManyCellsError struct {
	Cells, CPUs int
}

func (e *TooManyCellsError) Error() string {
	return fmt.Sprintf("%d cells need at least as many CPUs, there are %d", e.Cells, e.CPUs)
}
