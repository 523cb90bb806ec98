package page

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"pinion/bench/record"
)

// Name of the page's file.
const Name = "README.md"

// Source is a run, and how the page links to its data.
type Source struct {
	Run  *record.Run
	Link string
}

// Render returns the files of a report by their names: the page and its plots, which it
// links to as files beside it. again is a second run of the same command, or nil.
func Render(first Source, again *Source) map[string][]byte {
	r := newReport(first.Run, first.Link)
	var second *report
	if again != nil {
		second = newReport(again.Run, again.Link)
	}
	var b strings.Builder
	r.top(&b)
	b.WriteString("## The bars\n\n")
	r.verdicts(&b, second)
	b.WriteString("## CPU time in every scenario\n\n")
	r.cpuPlot(&b)
	b.WriteString("## Every scenario\n\n")
	r.legend(&b)
	r.writeScenarios(&b)
	b.WriteString("## Is the generator right?\n\n")
	b.WriteString("A generator that lags, or that stops its clock while the server is slow, makes any server look good. What was checked in this run:\n\n")
	r.generators(&b)
	b.WriteString("## Method, and what it cannot tell\n\n")
	r.method(&b)
	if second != nil {
		b.WriteString("## Run twice\n\n")
		r.repeated(&b, second)
	}
	b.WriteString("## Host\n\n")
	r.host(&b)
	b.WriteString("## Peers\n\n")
	r.peerTables(&b)
	r.plots[Name] = []byte(strings.TrimRight(b.String(), "\n") + "\n")
	return r.plots
}

// Write writes a report into a folder, each file whole or not at all, and takes away plots
// of an earlier one that are no longer part of it.
func Write(dir string, files map[string][]byte) error {
	ours := regexp.MustCompile(`^(cpu|cpu-ping|(latency|throughput|memory)-[a-z0-9-]+)\.svg$`)
	old, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var all []error
	for _, f := range old {
		if _, kept := files[f.Name()]; !kept && ours.MatchString(f.Name()) {
			all = append(all, os.Remove(filepath.Join(dir, f.Name())))
		}
	}
	for name, text := range files {
		all = append(all, replace(filepath.Join(dir, name), text))
	}
	return errors.Join(all...)
}

func replace(path string, text []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // gone after the rename
	if _, err = tmp.Write(text); err == nil {
		err = tmp.Chmod(0o644)
	}
	if closed := tmp.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// top is what a reader in a hurry sees.
func (r *report) top(b *strings.Builder) {
	b.WriteString("# Benchmarks: pinion beside other servers\n\n")
	r.reservations(b)
	b.WriteString("What one request costs in CPU time, measured side by side on one machine: the same routes, the same bodies, rounds that take turns. " +
		"Everything here is made from [the raw data](" + r.raw + ") by `make bench-report`, bars that pinion misses included.\n\n")
	if r.mostRounds < 3 {
		b.WriteString("> [!NOTE]\n> No figure was taken three times: nothing here says how steady it is.\n\n")
	}
	b.WriteString("Measured " + r.date() + " at revision " + code(r.run.Revision) + ". On a machine of your own, with at least two CPUs:\n\n" +
		"```\nmake bench-quick   # under 3 minutes, for a look\nmake bench-peers   # under 20 minutes, all of this page\n```\n\n")
	if !r.headlinePlot(b) {
		b.WriteString("The headline, CPU time per ping at 64 connections, was not measured in this run.\n\n")
		return
	}
	r.headlineTable(b)
}

// reservations say before all else why a run is not one to be quoted.
func (r *report) reservations(b *strings.Builder) {
	var why []string
	if r.run.Quick {
		why = append(why, "A quick run: "+plural(r.run.Rounds, "round")+", short ones, and not all of the scenarios. Good for a look, not to be quoted.")
	}
	if r.run.Partial != "" {
		why = append(why, "This is not a whole run. "+prose(strings.ReplaceAll(r.run.Partial, "*", "\\*")))
	}
	if why != nil {
		b.WriteString("**" + strings.Join(why, " ") + "**\n\n")
	}
}

func (r *report) date() string {
	if r.run.Started.IsZero() {
		return "at an unknown time"
	}
	text := "on " + r.run.Started.UTC().Format("2 January 2006, 15:04 UTC")
	if minutes := r.run.Ended.Sub(r.run.Started).Minutes(); minutes >= 0.5 {
		text += fmt.Sprintf(", in %s", plural(int(minutes+0.5), "minute"))
	}
	return text
}

func (r *report) headlineTable(b *strings.Builder) {
	t := newTable("peer", "version", ">×\u00a0"+fasthttp, ">×\u00a0"+floor, ">CPU, µs/request")
	unsteady := false
	for _, peer := range r.measured("ping", 64) {
		s := r.of(headline(peer), (*record.Sample).Micros)
		unsteady = unsteady || r.cpuDagger(headline(peer)) != ""
		row := []string{peerName(peer), or(prose(r.peer(peer).Version), none)}
		for _, to := range []string{fasthttp, floor} {
			cell := none
			if ratio := r.ratio(headline(peer), headline(to), (*record.Sample).Micros); ratio.N > 0 {
				cell = fmt.Sprintf("%.2f", ratio.Median)
			}
			row = append(row, cell)
		}
		t.add(append(row, spread(s, digits, r.cpuDagger(headline(peer))))...)
	}
	t.write(b)
	b.WriteString("A column with × is the ratio to the CPU time of that peer, the median of the ratios of each round: both sides of a round saw the same host. " +
		"It is a median of its own, so it need not be the one of the two figures beside it. " +
		"µs are the median of the rounds, in brackets the least and the greatest, and move with the host from round to round.")
	if unsteady {
		b.WriteString(" † is [unsteady](#every-scenario).")
	}
	b.WriteString("\n\n")
}

// legend explains the tables.
func (r *report) legend(b *strings.Builder) {
	more, of := "", "CPU"
	if r.mostRounds > r.run.Rounds {
		more = " Such figures got more rounds before they were given this mark."
	}
	if r.loadCPUs > 1 {
		of = "CPUs"
	}
	b.WriteString("Figures are medians of the rounds, with three significant digits; brackets hold the least and the greatest. Peers stand in the order of the first plot. " +
		"Under \"CPU, server / load\" is how much of the time of one CPU the server used, and how much the generator of the load: where the latter gave out first, throughput is no measure of the server. " +
		"RSS is the resident memory of all processes of the server. Errors, if there were any, stand below a table. " +
		"Closed loops have no latency: a client that is busy starts its clock late. That is what the scenarios with a rate are for.\n\n")
	fmt.Fprintf(b, "- † unsteady: the middle half of the rounds is wider than %.0f %% of the median, or there are fewer than three. Of CPU times, what made all peers of a round slower or faster alike is left out of this.%s\n"+
		"- ‡ the generator was the limit: it used at least %.0f %% of its %s while the server used less of its own, or, in most rounds of an open loop, more than a tenth of the p99 may be its own doing.\n"+
		"- – not measured, or not known.\n\n", record.Steady*100, more, busy*100, of)
}

func (r *report) method(b *strings.Builder) {
	for _, s := range []string{
		"The figure that counts is CPU time, user and system, of all processes of the server, divided by the requests it answered. It says what a request costs also where a generator, and not the server, ends the throughput.",
		"The kernel's work for a packet on loopback is charged to whoever sends it, so the server's figure has some of the client's receiving in it, alike for all peers.",
		"Loopback has no network card, no interrupts and no losses. A ratio may be different on a network, and different again on another CPU.",
		"A ratio compares what ran in the same round. Absolute figures move with whatever else the host does; compare those of one run only.",
		"All peers give the same bodies on the same routes; a checker proves it, and the headers that matter, before anything is timed. Heads are each server's own: their sizes are below.",
	} {
		b.WriteString("- " + s + "\n")
	}
	for _, s := range r.run.Method {
		b.WriteString("- " + prose(s) + "\n")
	}
	if r.run.Command != "" {
		fmt.Fprintf(b, "- The run was made by %s: %s of each measurement%s.\n", code(r.run.Command), plural(r.run.Rounds, "round"), r.more())
	}
	b.WriteString("\n")
}

// more tells of rounds beyond those that were planned.
func (r *report) more() string {
	if r.mostRounds > r.run.Rounds && r.run.Rounds > 0 {
		return fmt.Sprintf(", up to %d where figures were unsteady", r.mostRounds)
	}
	return ""
}
