package chart

import "math"

// together is how many lines can be told apart in one frame.
const together = 5

// facets draws a frame for each line, all to the same scales: the line itself in front,
// those that are strong behind it for comparison, and the others faint.
func (p Lines) facets(lines []Line) []byte {
	const gap, tall, under = 24.0, 118.0, 52.0
	columns := p.Columns
	var c canvas
	y := c.head(p.Title, p.Subtitle) + 12
	c.text(padding, y-4, label{color: muted, size: small}, p.YAxis)
	y += 26

	whole, level := p.scales(lines, y+tall, y)
	left := whole.start
	wide := (Width - padding - left - gap*float64(columns-1)) / float64(columns)
	for i, l := range lines {
		column := i % columns
		if i > 0 && column == 0 {
			y += tall + under
		}
		across := whole
		across.start = left + float64(column)*(wide+gap)
		across.end = across.start + wide
		level.start, level.end = y+tall, y
		look := label{bold: l.Style.Strong}
		if l.Style.Strong {
			look.color = l.Style.Color
		}
		c.text(across.start, y-8, look, l.Name)
		p.frame(&c, across, level, column == 0, 4)
		for _, strong := range []bool{false, true} {
			for _, other := range lines {
				if other.Name == l.Name || other.Style.Strong != strong {
					continue
				}
				other.Style.Strong = false
				if !strong {
					other.Style = Style{Color: faint}
				}
				p.line(&c, other, across, level, false)
			}
		}
		if !l.Style.Strong {
			l.Style = Style{Color: ink}
		}
		p.line(&c, l, across, level, p.Dots)
	}
	bottom := y + tall + 38
	c.text(padding, bottom, label{color: muted}, p.XAxis)
	return c.document(bottom+padding-6, p.Title, p.describe(lines))
}

// frame draws the axes of a frame; the names of the levels only if asked to.
func (p Lines) frame(c *canvas, x, y scale, names bool, levels int) {
	for _, t := range p.levels(y, levels) {
		c.line(x.start, y.at(t), x.end, y.at(t), grid)
		if names {
			c.text(x.start-8, y.at(t)+4, label{anchor: "end", color: muted, size: small}, p.Format(t))
		}
	}
	free := math.Inf(-1)
	for _, t := range p.Ticks {
		if t.At < x.low*(1-1e-9) || t.At > x.high*(1+1e-9) {
			continue
		}
		at, half := x.at(t.At), extent(t.Name, small)/2
		c.line(at, y.end, at, y.start, grid)
		// A name at the very edge of a frame leans inwards, since a neighbour is beside it.
		place := math.Min(math.Max(at, x.start-8+half), x.end+6-half)
		if place-half < free {
			continue
		}
		c.text(place, y.start+17, label{anchor: "middle", color: muted, size: small}, t.Name)
		free = place + half + 4
	}
	c.line(x.start, y.start, x.end, y.start, muted)
}

// levels returns the figures of Y that get a line: of a log scale in a low frame only the
// powers of ten.
func (p Lines) levels(y scale, n int) []float64 {
	all := ticks(y.low, y.high, n, p.LogY)
	if p.LogY && float64(len(all))*15 > math.Abs(y.end-y.start) {
		all = ticksOf(y.low, y.high, []float64{1})
	}
	return all
}
