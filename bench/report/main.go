// Command report makes the page of a run of benchmarks, and its plots, from the raw data
// alone. It replaces README.md and the plots in the folder and leaves other files as they
// are.
//
//	cd bench && go run ./report -in ../docs/benchmarks/raw.json -out ../docs/benchmarks
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"pinion/bench/record"
	"pinion/bench/report/page"
)

func main() {
	switch err := run(os.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	fs := flag.NewFlagSet("report", flag.ContinueOnError)
	in := fs.String("in", "../docs/benchmarks/raw.json", "raw data of a run")
	second := fs.String("again", "", "raw data of a second run of the same command, to be compared; empty = none")
	out := fs.String("out", "../docs/benchmarks", "folder for the page and its plots")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("what is %q?", fs.Args())
	}
	first, err := source(*in, *out)
	if err != nil {
		return err
	}
	var again *page.Source
	if *second != "" {
		if again, err = source(*second, *out); err != nil {
			return err
		}
		if err = alike(first.Run, again.Run); err != nil {
			return fmt.Errorf("%s beside %s: %w", *second, *in, err)
		}
	}
	return page.Write(*out, page.Render(*first, again))
}

// errUnlike is of a second run that cannot be compared with the first.
var errUnlike = errors.New("not a second run of the same")

func alike(first, second *record.Run) error {
	switch {
	case second.Partial != "":
		return fmt.Errorf("%w: it is not a whole run: %s", errUnlike, second.Partial)
	case second.Command != first.Command:
		return fmt.Errorf("%w: it was made by %q, and the first by %q", errUnlike, second.Command, first.Command)
	case second.Quick != first.Quick:
		return fmt.Errorf("%w: one of them is quick", errUnlike)
	}
	return nil
}

// source reads a run. The page in the folder out links to it.
func source(path, out string) (*page.Source, error) {
	run, err := record.Read(path)
	if err != nil {
		return nil, err
	}
	link, err := filepath.Rel(out, path)
	if err != nil {
		return nil, fmt.Errorf("no link from %s to %s: %w", out, path, err)
	}
	return &page.Source{Run: run, Link: filepath.ToSlash(link)}, nil
}
