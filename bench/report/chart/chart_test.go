package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// box is where a text stands.
type box struct {
	text                     string
	left, top, right, bottom float64
}

// boxes reads a document, which has to be well formed, and returns its size and its texts.
func boxes(t *testing.T, svg []byte) (height float64, texts []box) {
	t.Helper()
	attribute := func(e xml.StartElement, name string) string {
		for _, a := range e.Attr {
			if a.Name.Local == name {
				return a.Value
			}
		}
		return ""
	}
	number := func(s string) float64 {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatalf("a number: %v", err)
		}
		return f
	}
	d := xml.NewDecoder(bytes.NewReader(svg))
	var open *box
	var size float64
	var anchor string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return height, texts
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		switch e := token.(type) {
		case xml.StartElement:
			switch e.Name.Local {
			case "svg":
				height = number(attribute(e, "height"))
			case "text":
				size, anchor = number(attribute(e, "font-size")), attribute(e, "text-anchor")
				if size < 12 {
					t.Errorf("text of %g px", size)
				}
				x, y := number(attribute(e, "x")), number(attribute(e, "y"))
				open = &box{left: x, right: x, top: y - size*0.8, bottom: y + size*0.2}
			}
		case xml.CharData:
			if open != nil {
				open.text += string(e)
			}
		case xml.EndElement:
			if e.Name.Local == "text" {
				w := float64(len([]rune(open.text))) * size * 0.55
				switch anchor {
				case "end":
					open.left -= w
				case "middle":
					open.left -= w / 2
					open.right += w / 2
				default:
					open.right += w
				}
				texts = append(texts, *open)
				open = nil
			}
		}
	}
}

// legible fails where texts overlap or are cut.
func legible(t *testing.T, svg []byte) []box {
	t.Helper()
	height, texts := boxes(t, svg)
	for i, a := range texts {
		if a.left < 4 || a.right > Width-4 || a.top < 4 || a.bottom > height-4 {
			t.Errorf("cut: %+v in a height of %g", a, height)
		}
		for _, b := range texts[:i] {
			if a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom {
				t.Errorf("overlap: %+v and %+v", a, b)
			}
		}
	}
	for _, bad := range []string{"NaN", "Inf"} {
		if bytes.Contains(svg, []byte(bad)) {
			t.Errorf("%s in\n%s", bad, svg)
		}
	}
	return texts
}

func has(texts []box, want string) bool {
	return slices.ContainsFunc(texts, func(b box) bool { return b.text == want })
}

func plain(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

func TestBars(t *testing.T) {
	nan := math.NaN()
	for _, log := range []bool{false, true} {
		p := Bars{Title: "A & <b>", Subtitle: "sub", Axis: "µs", Notes: "to a", Log: log, Format: plain, Bars: []Bar{
			{Name: "a", Value: 280, Min: 270, Max: 300, Text: "280 µs", Style: Style{Hatched: true}},
			{Name: "a rather long name", Value: 20000, Min: 19000, Max: 40000, Text: "20,000 µs", Note: "71.4", Style: Style{Color: "#123456", Strong: true}},
			{Name: "unknown", Value: nan, Min: nan, Max: nan, Text: "none"},
			{Name: "endless", Value: 1, Min: 1, Max: math.Inf(1), Text: "none"},
			{Name: "once", Value: 5, Min: 5, Max: 5, Text: "5 µs", Style: Style{Color: "#123456"}},
		}}
		svg := p.SVG()
		texts := legible(t, svg)
		for _, want := range []string{"A & <b>", "a rather long name", "20,000 µs", "71.4", "once"} {
			if !has(texts, want) {
				t.Errorf("log=%v: %q is missing", log, want)
			}
		}
		if has(texts, "unknown") || has(texts, "endless") {
			t.Errorf("log=%v: drew what has no value", log)
		}
		if n := bytes.Count(svg, []byte("stroke-opacity")); n != 2 {
			t.Errorf("log=%v: %d whiskers, want 2: one measured once has none", log, n)
		}
		if !bytes.Equal(svg, p.SVG()) {
			t.Error("twice is not the same")
		}
	}
	legible(t, Bars{Title: "nothing", Format: plain}.SVG())
	legible(t, Bars{Title: "nothing", Format: plain, Log: true}.SVG())
}

// Twice the value is twice the length.
func TestBarLength(t *testing.T) {
	bar := func(name string, v float64) Bar {
		return Bar{Name: name, Value: v, Min: v, Max: v, Style: Style{Color: "#abcdef"}}
	}
	svg := string(Bars{Format: plain, Bars: []Bar{bar("a", 2), bar("b", 4)}}.SVG())
	var w [2]float64
	for i, part := range strings.SplitN(svg, `fill="#abcdef"`, 3)[:2] {
		at := strings.LastIndex(part, ` width="`) + len(` width="`)
		w[i], _ = strconv.ParseFloat(part[at:at+strings.IndexByte(part[at:], '"')], 64)
	}
	if w[0] <= 0 || math.Abs(w[1]/w[0]-2) > 0.01 {
		t.Errorf("widths %v", w)
	}
}

func TestPanels(t *testing.T) {
	p := Panels{Title: "All", Subtitle: "sub", Columns: 3}
	for i := range 5 {
		one := Bars{Title: fmt.Sprintf("panel %d, 1,024 connections", i)}
		for j := range 4 + i {
			one.Bars = append(one.Bars, Bar{Name: fmt.Sprintf("server %d", j), Value: 1, Min: 0.5, Max: float64(2 + j), Text: "0.949"})
		}
		p.Panels = append(p.Panels, one)
	}
	if texts := legible(t, p.SVG()); !has(texts, "panel 4, 1,024 connections") || !has(texts, "server 7") {
		t.Error("something is missing")
	}
}

// TestPanelNames has a long name in one of three panels, which costs the others no width.
func TestPanelNames(t *testing.T) {
	bars := func(name string) Bars {
		return Bars{Title: "t", Bars: []Bar{{Name: name, Value: 1, Min: 1, Max: 1, Text: "1", Style: Style{Color: "#abcdef"}}}}
	}
	svg := func(names ...string) string {
		p := Panels{Columns: 3}
		for _, n := range names {
			p.Panels = append(p.Panels, bars(n))
		}
		return string(p.SVG())
	}
	bar := func(svg string, i int) string {
		_, after, _ := strings.Cut(strings.Split(svg, "<rect")[4+i], "width=")
		return after[:strings.IndexByte(after[1:], '"')+2]
	}
	without, with := svg("short", "short", "short"), svg("short", "a much longer name", "short")
	if a, b := bar(without, 0), bar(with, 0); a != b || !strings.HasPrefix(a, `"`) {
		t.Errorf("a bar is %s wide, and %s beside a panel with a long name", a, b)
	}
	if a, b := bar(without, 1), bar(with, 1); a == b {
		t.Error("a long name takes no width")
	}
	legible(t, []byte(with))
}

func TestLines(t *testing.T) {
	for _, n := range []int{0, 1, 2, together, together + 1, 13} {
		for _, log := range []bool{false, true} {
			p := Lines{
				Title: "L", Subtitle: "sub", XAxis: "x", YAxis: "requests", LogY: log, Dots: true, Format: plain, Columns: 4,
				Ticks: []Tick{{1, "1"}, {2, "64"}, {4, "256"}, {8, "1,024"}},
			}
			for i := range n {
				p.Lines = append(p.Lines, Line{
					Name: fmt.Sprintf("server %d", i), Style: Style{Color: "#123456", Strong: i == 1},
					Points: []Point{{1, 100, false}, {4, 100000 + float64(i), true}, {8, math.NaN(), false}},
				})
			}
			p.Lines = append(p.Lines, Line{Name: "nothing", Points: []Point{{1, math.Inf(1), false}}})
			svg := p.SVG()
			texts := legible(t, svg)
			if has(texts, "nothing") || n > 0 && !has(texts, fmt.Sprintf("server %d", n-1)) {
				t.Errorf("%d lines: wrong ones are drawn", n)
			}
			if rings := bytes.Count(svg, []byte(`r="3.5" fill="#fff"`)); rings != n {
				t.Errorf("%d lines: %d rings", n, rings)
			}
			if p.Frames() != (n > together) {
				t.Errorf("%d lines: frames %v", n, p.Frames())
			}
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct{ got, want []float64 }{
		{ticks(0, 14.8, 6, false), []float64{0, 5, 10}},
		{ticks(0, 0, 6, false), nil},
		{ticks(1, 1000, 6, true), []float64{1, 10, 100, 1000}},
		{ticks(50, 500, 6, true), []float64{50, 100, 200, 500}},
		{ticks(0, 500, 6, true), nil},
		{powers(128, 1100), []float64{128, 256, 512, 1024}},
		{powers(1, 1<<20), []float64{1, 8, 64, 512, 4096, 32768, 262144}},
	} {
		if !slices.EqualFunc(c.got, c.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9*b+1e-12 }) {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	for x, want := range map[float64][2]float64{3: {2, 5}, 10: {10, 10}, 0.07: {0.05, 0.1}, 990: {500, 1000}} {
		if down, up := roundDown(x), roundUp(x); math.Abs(down-want[0]) > 1e-9 || math.Abs(up-want[1]) > 1e-9 {
			t.Errorf("%g: between %g and %g, want %v", x, down, up, want)
		}
	}
}

func TestApart(t *testing.T) {
	for _, c := range []struct{ in, want []float64 }{
		{nil, nil},
		{[]float64{50}, []float64{50}},
		{[]float64{20, 50}, []float64{20, 50}},
		{[]float64{50, 50}, []float64{45, 55}},
		{[]float64{0, 0, 0}, []float64{0, 10, 20}},
		{[]float64{98, 99, 100}, []float64{80, 90, 100}},
		{[]float64{10, 50, 52, 54}, []float64{10, 42, 52, 62}},
	} {
		if got := apart(c.in, 10, 0, 100); !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
			t.Errorf("%v: got %v, want %v", c.in, got, c.want)
		}
	}
}
