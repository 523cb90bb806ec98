package page

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// verdicts is the table of all bars, and a paragraph that counts them. again is a second
// run, or nil.
func (r *report) verdicts(b *strings.Builder, again *report) {
	head := []string{">#", "verdict", "what", "of", ">bar ≤", ">goal ≤", ">measured"}
	if again != nil {
		head = append(head, "second run")
	}
	t := newTable(head...)
	rows := map[int][]verdict{}
	var twice retrial
	for _, one := range bars() {
		for _, j := range r.judge(one) {
			if j.beside && j.value.N == 0 {
				continue
			}
			row := []string{strconv.Itoa(j.number), j.text(), j.load(rows[j.number] != nil), j.about(), j.bound(j.limit), j.bound(j.goal), j.measured(r)}
			if rows[j.number] != nil {
				row[0] = ""
			}
			if !j.beside {
				rows[j.number] = append(rows[j.number], j.verdict)
			}
			if again != nil {
				row = append(row, twice.row(j, again))
			}
			t.add(row...)
		}
	}
	tally(b, rows)
	if again != nil {
		twice.write(b)
	}
	t.write(b)
	b.WriteString("Where one peer is divided by another, the figure is a ratio: the median of the ratios of each round, and in brackets " +
		"the least and the greatest. Verdicts are by the exact median, not by the one rounded for print." +
		" `engine` answers with the same handlers as `fasthttp`; `pinion` is the product, with all its middleware and metrics." +
		" Best other is the Go server that spends the least apart from fasthttp and gnet." +
		" Undecided is a bar with the middle half of the rounds on both sides of it, or a latency whose generator was behind (‡) or failed a [check](#is-the-generator-right): another run may say otherwise. In brackets is what the median alone says.")
	fmt.Fprintf(b, " Fewer than one object in %d requests count as none: what a process does beside its requests is counted too.\n\n", int(1/fewAllocations))
}

// tally counts bars, by the verdicts on their rows: a bar is worth its worst row.
func tally(b *strings.Builder, rows map[int][]verdict) {
	n := map[verdict]int{}
	partly := 0
	for _, all := range rows {
		judged := slices.DeleteFunc(slices.Clone(all), func(v verdict) bool { return v == notMeasured })
		if len(judged) == 0 {
			n[notMeasured]++
			continue
		}
		n[slices.Min(judged)]++
		if len(judged) < len(all) {
			partly++
		}
	}
	fmt.Fprintf(b, "Of the %d bars that pinion set itself, **%d met** (%d of them with the goal), **%d missed**, **%d undecided**, %d not measured. "+
		"A bar is worth its worst row: missed when any of them is missed, else undecided when any of them is",
		len(rows), n[met]+n[goalMet], n[goalMet], n[missed], n[undecided], n[notMeasured])
	if partly > 0 {
		fmt.Fprintf(b, "; for %d of those judged some rows were not measured", partly)
	}
	b.WriteString(".\n\n")
}

// retrial counts what a second run says to the verdicts of the first.
type retrial struct {
	rows, same int
	contrary   []int // bars of which one run says missed and the other met
}

// row returns the cell of the second run: its figure, and its verdict where it is another.
func (t *retrial) row(j judged, again *report) string {
	second := j.again(again)
	if j.value.N == 0 || second.value.N == 0 {
		return none
	}
	text := second.short()
	if j.beside {
		return text
	}
	t.rows++
	if second.verdict == j.verdict {
		t.same++
	}
	if second.verdict == j.verdict && second.side == j.side {
		return text
	}
	if (j.verdict == missed && second.verdict >= met || j.verdict >= met && second.verdict == missed) && !slices.Contains(t.contrary, j.number) {
		t.contrary = append(t.contrary, j.number)
	}
	return text + ", " + second.text()
}

func (t *retrial) write(b *strings.Builder) {
	if t.rows == 0 {
		return
	}
	fmt.Fprintf(b, "All of this was [measured a second time](#run-twice), which comes to the same verdict in %d of %s; where the two differ, its own stands beside its figure. ", t.same, plural(t.rows, "row"))
	if len(t.contrary) == 0 {
		b.WriteString("No row that one run calls met is called missed by the other.\n\n")
		return
	}
	numbers := make([]string, 0, len(t.contrary))
	for _, n := range t.contrary {
		numbers = append(numbers, strconv.Itoa(n))
	}
	bars := "bar " + numbers[0]
	if last := len(numbers) - 1; last > 0 {
		bars = "bars " + strings.Join(numbers[:last], ", ") + " and " + numbers[last]
	}
	fmt.Fprintf(b, "**Of %s, one run says met and the other missed: take neither for granted.**\n\n", bars)
}

// load says what the figure is about; in rows after the first of a bar only what is new.
func (j judged) load(again bool) string {
	var parts []string
	if !again {
		parts = append(parts, j.what)
	}
	if j.conns != 0 {
		parts = append(parts, plural(j.found, "connection"))
	}
	if j.beside {
		parts = append(parts, j.what)
	}
	return strings.Join(parts, ", ")
}

// about says of which peers the figure is.
func (j judged) about() string {
	by := " ÷\u00a0" // some names have a stroke in them
	if j.beside {
		by = " ÷ " // a long name needs the width of the column
	}
	switch {
	case j.to == "":
		return j.of
	case j.to != bestOther || j.other == "":
		return j.of + by + j.to
	}
	return j.of + by + j.other + ", " + bestOther
}

func (j judged) bound(limit float64) string {
	switch {
	case j.beside:
		return none
	case j.figure.worst:
		return "0"
	case j.to != "":
		return strconv.FormatFloat(limit, 'f', 2, 64)
	}
	return tick(digits)(limit) + " " + j.figure.unit
}

// format is how the figure is written.
func (j judged) format() func(float64) string {
	switch {
	case j.figure.worst:
		return hundredths
	case j.to == "":
		return digits
	}
	return three
}

// short is the median alone.
func (j judged) short() string {
	text := j.format()(j.value.Median)
	if j.figure.unit != "" {
		text += "\u00a0" + j.figure.unit
	}
	return text
}

func (j judged) measured(r *report) string {
	if j.value.N == 0 {
		return none
	}
	if j.figure.worst {
		return j.short() + broken + "(" + j.at + ")"
	}
	text := j.short() + r.dagger(j.value)
	if j.behind {
		text += " ‡"
	}
	return text + extremes(j.value, j.format())
}

func (j judged) text() string {
	if j.beside {
		return "to compare"
	}
	text := j.verdict.String()
	switch {
	case j.verdict == notMeasured:
		return text + ": " + j.reason
	case j.verdict == undecided:
		text += " (" + strings.Trim(j.side.String(), "*") + ")"
	case j.verdict < j.side:
		text += ", goal undecided"
	}
	if j.flawed {
		text += ", **with errors**"
	}
	return text
}
