package page

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"pinion/bench/record"
)

// Summary writes a table of the CPU time per request for a terminal: a row for each peer,
// in the order of the page, a column for each load.
func Summary(w io.Writer, run *record.Run) error {
	r := newReport(run, "")
	rows := [][]string{{"CPU, µs/request"}}
	for _, peer := range r.order {
		rows = append(rows, []string{peer})
	}
	marks := map[string]bool{}
	for _, sc := range r.scenarios() {
		if sc.kind != closedLoop {
			continue
		}
		for _, n := range sc.conns {
			rows[0] = append(rows[0], fmt.Sprintf("%s %d", sc.Name, n))
			for i, peer := range r.order {
				cell := r.short(record.Key{Scenario: sc.Name, Conns: n, Peer: peer}, marks)
				rows[i+1] = append(rows[i+1], cell)
			}
		}
	}
	var b strings.Builder
	align(&b, rows)
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

// short is a figure with its marks, which are noted.
func (r *report) short(key record.Key, marks map[string]bool) string {
	s := r.of(key, (*record.Sample).Micros)
	text := digits(s.Median)
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
