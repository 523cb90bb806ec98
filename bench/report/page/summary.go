package page

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"pinion/bench/record"
)

// Summary writes tables for a terminal: the CPU time per request in closed loops, and the
// p99 in open loops, if there are any. Each has a row for each peer, in the order of the
// page, and a column for each load.
func Summary(w io.Writer, run *record.Run) error {
	r := newReport(run, "")
	marks := map[string]bool{}
	var b strings.Builder
	r.summarize(&b, "CPU, µs/request", closedLoop, func(key record.Key) string {
		return r.short(key, digits(r.of(key, (*record.Sample).Micros).Median), marks)
	})
	r.summarize(&b, "p99", openLoop, func(key record.Key) string {
		return r.short(key, duration(r.of(key, p99).Median), marks)
	})
	for _, m := range []struct{ mark, text string }{
		{"†", "unsteady, or fewer than three rounds"},
		{"‡", "the generator was the limit, not the server"},
		{"!", "there were errors"},
	} {
		if marks[m.mark] {
			b.WriteString(m.mark + " " + m.text + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// summarize writes the table of one kind of load.
func (r *report) summarize(b *strings.Builder, title string, of kind, cell func(record.Key) string) {
	rows := [][]string{{title}}
	for _, peer := range r.order {
		rows = append(rows, []string{peer})
	}
	for _, sc := range r.scenarios() {
		if sc.kind != of {
			continue
		}
		for _, n := range sc.conns {
			rows[0] = append(rows[0], fmt.Sprintf("%s %d", sc.Name, n))
			for i, peer := range r.order {
				rows[i+1] = append(rows[i+1], cell(record.Key{Scenario: sc.Name, Conns: n, Peer: peer}))
			}
		}
	}
	if len(rows[0]) > 1 || len(r.order) == 0 && of == closedLoop { // of nothing at least a title
		align(b, rows)
	}
}

// short is a figure with its marks, which are noted.
func (r *report) short(key record.Key, text string, marks map[string]bool) string {
	for _, m := range []struct {
		mark string
		set  bool
	}{{"†", r.cpuDagger(key) != ""}, {"‡", r.limited(key)}, {"!", r.errors(key) != (record.Errors{})}} {
		if m.set {
			text += m.mark
			marks[m.mark] = true
		}
	}
	return text
}

// align writes rows with columns of equal width, the first to the left.
func align(b *strings.Builder, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		for i, cell := range row {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				b.WriteString(cell + gap)
			} else {
				b.WriteString("  " + gap + cell)
			}
		}
		b.WriteByte('\n')
	}
}
