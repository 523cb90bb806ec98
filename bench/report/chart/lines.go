package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Point is one measurement on a line.
type Point struct {
	X, Y   float64
	Hollow bool // drawn as a ring: to be read with care
}

// Line is the measurements of one peer, ascending in X.
type Line struct {
	Name   string
	Style  Style
	Points []Point
}

// Tick is a place on an axis that has a name.
type Tick struct {
	At   float64
	Name string
}

// Lines is a plot of lines, with their names at the right, or with a frame for each line
// if there are many. X is on a log scale.
type Lines struct {
	Title, Subtitle string
	XAxis, YAxis    string
	Ticks           []Tick // of X, ascending
	LogY            bool
	Dots            bool                 // show the points
	Format          func(float64) string // of ticks of Y
	Columns         int                  // of frames, where there are too many lines for one
	Lines           []Line
}

func (p Lines) drawable() []Line {
	var lines []Line
	for _, l := range p.Lines {
		l.Points = slices.DeleteFunc(slices.Clone(l.Points), func(at Point) bool {
			return !finite(at.X) || !finite(at.Y) || at.X <= 0 || at.Y < 0 || p.LogY && at.Y == 0
		})
		if len(l.Points) > 0 {
			lines = append(lines, l)
		}
	}
	return lines
}

// Frames reports whether each line gets a frame of its own, where it is in front of the
// others.
func (p Lines) Frames() bool { return len(p.drawable()) > together }

// SVG draws the plot.
func (p Lines) SVG() []byte {
	const between = 17.0 // names
	lines := p.drawable()
	if p.Frames() {
		return p.facets(lines)
	}
	var c canvas
	top := c.head(p.Title, p.Subtitle) + 18
	bottom := top + 300
	x, y := p.scales(lines, bottom, top)
	var names []string
	for _, l := range lines {
		names = append(names, l.Name)
	}
	x.end -= widest(names, normal) + 34
	c.text(padding, top-12, label{color: muted, size: small}, p.YAxis)
	p.frame(&c, x, y, true, 6)
	c.text((x.start+x.end)/2, bottom+38, label{anchor: "middle", color: muted}, p.XAxis)
	for _, l := range slices.Backward(lines) { // the first on top
		p.line(&c, l, x, y, p.Dots)
	}
	p.names(&c, lines, x, y, between)
	return c.document(bottom+38+padding-6, p.Title, p.describe(lines))
}

func (p Lines) scales(lines []Line, bottom, top float64) (x, y scale) {
	x = scale{log: true, low: math.Inf(1), start: padding, end: Width - padding}
	y = scale{log: p.LogY, low: math.Inf(1), start: bottom, end: top}
	for _, l := range lines {
		for _, at := range l.Points {
			x.low, x.high = math.Min(x.low, at.X), math.Max(x.high, at.X)
			y.low, y.high = math.Min(y.low, at.Y), math.Max(y.high, at.Y)
		}
	}
	if len(lines) == 0 {
		return x, y
	}
	if p.LogY {
		y.low, y.high = roundDown(y.low), roundUp(y.high)
	} else {
		step := roundUp(y.high / 6)
		y.low, y.high = 0, math.Ceil(y.high/step)*step
	}
	var marks []string
	for _, t := range p.levels(y, 6) {
		marks = append(marks, p.Format(t))
	}
	x.start += widest(marks, small) + 8
	if x.low == x.high { // one place: in the middle
		x.low, x.high = x.low/2, x.high*2
	}
	return x, y
}

func (p Lines) line(c *canvas, l Line, x, y scale, dots bool) {
	width := 1.6
	if l.Style.Strong {
		width = 2.8
	}
	var d strings.Builder
	for i, at := range l.Points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		d.WriteString(command + num(x.at(at.X)) + " " + num(y.at(at.Y)))
	}
	fmt.Fprintf(&c.body, `<path d="%s" fill="none" stroke="%s" stroke-width="%s" stroke-linejoin="round"`, d.String(), l.Style.Color, num(width))
	if l.Style.Dash != "" {
		fmt.Fprintf(&c.body, ` stroke-dasharray="%s"`, l.Style.Dash)
	}
	fmt.Fprintf(&c.body, "><title>%s</title></path>\n", escape(l.Name))
	for _, at := range l.Points {
		if !dots {
			break
		}
		fill := l.Style.Color
		if at.Hollow {
			fill = "#fff"
		}
		fmt.Fprintf(&c.body, `<circle cx="%s" cy="%s" r="3.5" fill="%s" stroke="%s" stroke-width="1.5"/>`+"\n",
			num(x.at(at.X)), num(y.at(at.Y)), fill, l.Style.Color)
	}
}

// names writes the names beside the ends of the lines, with a thin line between the two.
func (p Lines) names(c *canvas, lines []Line, x, y scale, between float64) {
	end := func(l Line) Point { return l.Points[len(l.Points)-1] }
	lines = slices.Clone(lines)
	slices.SortStableFunc(lines, func(a, b Line) int {
		switch d := y.at(end(a).Y) - y.at(end(b).Y); {
		case d < 0:
			return -1
		case d > 0:
			return 1
		}
		return 0
	})
	places := make([]float64, 0, len(lines))
	for _, l := range lines {
		places = append(places, y.at(end(l).Y))
	}
	places = apart(places, between, y.end, y.start)
	for i, l := range lines {
		from, to := x.at(end(l).X)+4, x.end+26
		level := y.at(end(l).Y)
		fmt.Fprintf(&c.body, `<path d="M%s %sL%s %sL%s %s" fill="none" stroke="%s" stroke-opacity="0.45" stroke-dasharray="1 2.5"/>`+"\n",
			num(from), num(level), num(math.Max(from, x.end+4)), num(level), num(to-3), num(places[i]), l.Style.Color)
		look := label{color: muted} // a grey that does for a line is too faint to read
		if l.Style.Strong {
			look = label{color: l.Style.Color, bold: true}
		}
		c.text(to, places[i]+4.5, look, l.Name)
	}
}

func (p Lines) describe(lines []Line) string {
	var names []string
	for _, l := range lines {
		names = append(names, l.Name)
	}
	return fmt.Sprintf("%s, by %s, of %s.", p.YAxis, p.XAxis, strings.Join(names, ", "))
}
