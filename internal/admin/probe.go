package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxProbeBytes bounds what is read of a cell's answer to a probe.
const maxProbeBytes = 4 << 10

var errNoCells = errors.New("there are no cells")

// ready is nil if every cell is, else an error that names the first that is not, and
// why.
func (f *fleet) ready(ctx context.Context) error {
	cells := f.Cells()
	if len(cells) == 0 {
		return errNoCells
	}
	for _, c := range cells {
		if c.State != StateReady {
			return fmt.Errorf("cell %d: %s", c.Cell, c.State)
		}
	}
	for i, err := range each(cells, func(c CellStatus) error { return f.probe(ctx, c.Cell, "/ready") }) {
		if err != nil {
			return cellError(cells[i].Cell, err)
		}
	}
	return nil
}

// alive is nil unless a cell that should run does not say that it does. One that is
// starting may not have opened its port.
func (f *fleet) alive(ctx context.Context) error {
	cells := f.Cells()
	errs := each(cells, func(c CellStatus) error {
		if !c.answers() || c.State == StateStarting {
			return nil
		}
		return f.probe(ctx, c.Cell, "/health")
	})
	for i, err := range errs {
		if err != nil && f.still(cells[i]) {
			return cellError(cells[i].Cell, err)
		}
	}
	return nil
}

// probe is nil if the cell answers path with 200, else the reason.
func (f *fleet) probe(ctx context.Context, cell int, path string) error {
	ctx, cancel := context.WithTimeout(ctx, f.probeTimeout)
	defer cancel()
	resp, err := f.get(ctx, cell, path, "")
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	var s state
	if json.NewDecoder(io.LimitReader(resp.Body, maxProbeBytes)).Decode(&s) == nil && s.Reason != "" {
		return errors.New(s.Reason)
	}
	return fmt.Errorf("status %d", resp.StatusCode)
}
