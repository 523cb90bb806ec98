package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"pinion/bench/record"
)

// output is where the raw data of a run goes. What an earlier run left there is replaced
// only by a run that got to its end.
type output struct {
	path string // empty: nowhere
}

// partial is where the data is until then.
func (o output) partial() string {
	ext := filepath.Ext(o.path)
	return strings.TrimSuffix(o.path, ext) + ".partial" + ext
}

// keep writes what there is so far. Called at the start, it tells that it can.
func (o output) keep(r *record.Run) error {
	if o.path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(o.path), 0o755); err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	if info, err := os.Stat(o.path); err == nil && info.IsDir() {
		return fmt.Errorf("-out %s: is a directory", o.path)
	}
	if err := r.Write(o.partial()); err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	return nil
}

// finish writes a run that got to its end.
func (o output) finish(r *record.Run) error {
	if o.path == "" {
		return nil
	}
	if err := r.Write(o.path); err != nil {
		return err
	}
	if err := os.Remove(o.partial()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// drop removes data that holds nothing.
func (o output) drop() {
	if o.path != "" {
		_ = os.Remove(o.partial()) // it says itself that it is not whole
	}
}
