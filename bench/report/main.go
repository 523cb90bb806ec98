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
	out := fs.String("out", "../docs/benchmarks", "folder for the page and its plots")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("what is %q?", fs.Args())
	}
	data, err := record.Read(*in)
	if err != nil {
		return err
	}
	link, err := filepath.Rel(*out, *in)
	if err != nil {
		return fmt.Errorf("no link from %s to %s: %w", *out, *in, err)
	}
	return page.Write(*out, page.Render(data, filepath.ToSlash(link)))
}
