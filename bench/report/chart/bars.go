package chart

import (
	"fmt"
	"math"
	"slices"
)

// Bar is one horizontal bar.
type Bar struct {
	Name            string
	Value, Min, Max float64 // no whisker where Min and Max are the same
	Text            string  // beside it: the value
	Note            string  // in a column of its own
	Style           Style
}

// Bars is a plot of bars below each other, in the order given.
type Bars struct {
	Title, Subtitle string
	Axis            string               // what is plotted, and its unit
	Notes           string               // head of the column of notes
	Log             bool                 // to the base of two
	Format          func(float64) string // of ticks
	Bars            []Bar
}

// drawable leaves out what cannot be drawn.
func (p Bars) drawable() []Bar {
	return slices.DeleteFunc(slices.Clone(p.Bars), func(b Bar) bool {
		return !finite(b.Value) || !finite(b.Min) || !finite(b.Max) || b.Min < 0 || p.Log && b.Min <= 0
	})
}

// SVG draws the plot.
func (p Bars) SVG() []byte {
	const row, thick = 27.0, 15.0
	bars := p.drawable()
	var c canvas
	top := c.head(p.Title, p.Subtitle)
	var names, texts, notes []string
	low, high := math.Inf(1), 0.0
	for _, b := range bars {
		names, texts, notes = append(names, b.Name), append(texts, b.Text), append(notes, b.Note)
		low, high = math.Min(low, b.Min), math.Max(high, b.Max)
	}
	right := Width - padding
	if p.Notes != "" {
		top += 14
		c.text(right, top-6, label{anchor: "end", color: muted, size: small}, p.Notes)
		right -= widest(notes, normal) + 18
	}
	left := padding + widest(names, normal) + 8
	s := scale{log: p.Log, high: high, start: left, end: right - widest(texts, normal) - 8}
	if p.Log {
		s.low = math.Exp2(math.Floor(math.Log2(low) - 0.5)) // the least has a length too
	}
	bottom := top + row*float64(len(bars)) + 4
	free := math.Inf(-1)
	marks := ticks(s.low, s.high, 6, false)
	if p.Log {
		marks = powers(s.low, s.high)
	}
	for _, t := range marks {
		x, text := s.at(t), p.Format(t)
		c.line(x, top, x, bottom, grid)
		if half := extent(text, small) / 2; x-half > free {
			c.text(x, bottom+16, label{anchor: "middle", color: muted, size: small}, text)
			free = x + half + 6
		}
	}
	for i, b := range bars {
		y := top + row*(float64(i)+0.5) + 2
		c.text(left-8, y+4.5, label{anchor: "end", bold: b.Style.Strong}, b.Name)
		c.rect(left, y-thick/2, s.at(b.Value)-left, thick, b.Style, b.Name+": "+b.Text)
		end := s.at(b.Value)
		if b.Min < b.Max {
			c.whisker(s.at(b.Min), s.at(b.Max), y, 4)
			end = s.at(b.Max)
		}
		c.text(end+7, y+4.5, label{bold: b.Style.Strong}, b.Text)
		if b.Note != "" {
			c.text(Width-padding, y+4.5, label{anchor: "end", color: muted}, b.Note)
		}
	}
	c.line(left, top, left, bottom, muted)
	c.text(left, bottom+36, label{color: muted}, p.Axis)
	return c.document(bottom+36+padding-6, p.Title, p.describe(bars))
}

func (p Bars) describe(bars []Bar) string {
	text := p.Axis + "."
	for _, b := range bars {
		text += fmt.Sprintf(" %s: %s.", b.Name, b.Text)
	}
	return text
}

// Panels is several plots of bars side by side, each to its own scale, which is not
// drawn: the values are beside the bars.
type Panels struct {
	Title, Subtitle string
	Columns         int
	Panels          []Bars
}

// SVG draws the panels row by row.
func (p Panels) SVG() []byte {
	const gap, row = 26.0, 19.0
	var c canvas
	// One panel with a long name does not take the width from all others.
	room := make([]float64, len(p.Panels))
	for i, one := range p.Panels {
		room[i] = one.names()
	}
	slices.Sort(room)
	usual := 0.0
	if len(room) > 0 {
		usual = room[len(room)/2]
	}
	wide := (Width - 2*padding - gap*float64(p.Columns-1)) / float64(p.Columns)
	y := c.head(p.Title, p.Subtitle) + 10
	description := ""
	for line := range slices.Chunk(p.Panels, p.Columns) {
		rows := 0
		for i, one := range line {
			bars := one.drawable()
			rows = max(rows, len(bars))
			one.panel(&c, bars, padding+float64(i)*(wide+gap), y, wide, math.Max(usual, one.names()), row)
			description += one.Title + ": " + one.describe(bars) + " "
		}
		y += 24 + row*float64(rows) + gap
	}
	return c.document(y-gap+padding, p.Title, description)
}

// names returns the width that the names take in a panel.
func (p Bars) names() float64 {
	var all []string
	for _, b := range p.Bars {
		all = append(all, b.Name)
	}
	return widest(all, small) + 6
}

func (p Bars) panel(c *canvas, bars []Bar, x, y, wide, name, row float64) {
	const thick = 11.0
	c.text(x, y+4, label{bold: true}, p.Title)
	var texts []string
	high := 0.0
	for _, b := range bars {
		texts = append(texts, b.Text)
		high = math.Max(high, b.Max)
	}
	left := x + name
	s := scale{high: high, start: left, end: x + wide - widest(texts, small) - 5}
	top := y + 16
	for i, b := range bars {
		mid := top + row*(float64(i)+0.5)
		c.text(left-6, mid+4, label{anchor: "end", size: small, bold: b.Style.Strong}, b.Name)
		c.rect(left, mid-thick/2, s.at(b.Value)-left, thick, b.Style, b.Name+": "+b.Text)
		end := s.at(b.Value)
		if b.Min < b.Max {
			c.whisker(s.at(b.Min), s.at(b.Max), mid, 3)
			end = s.at(b.Max)
		}
		c.text(end+5, mid+4, label{size: small, bold: b.Style.Strong}, b.Text)
	}
	c.line(left, top, left, top+row*float64(len(bars)), muted)
}
