package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// Width of every plot, in CSS pixels: about the column in which a README is shown, so that
// nothing is scaled much and text keeps its size.
const Width = 860.0

const (
	padding = 24.0

	ink   = "#1f2328"
	muted = "#59636e"
	grid  = "#e6e9ed"
	frame = "#d1d9e0"
	faint = "#d3d9df" // lines that are only there to compare with

	large  = 17.0 // title
	normal = 13.0
	small  = 12.0
)

// Style is how a peer looks in every plot.
type Style struct {
	Color   string // CSS
	Hatched bool   // bars: not one of the peers, but what they are measured by
	Dash    string // lines: stroke-dasharray
	Strong  bool   // the name in bold, the line thicker
}

// canvas collects the elements of a document. The zero value is ready.
type canvas struct {
	body bytes.Buffer
}

// document closes the canvas at a height.
func (c *canvas) document(height float64, title, description string) []byte {
	var b bytes.Buffer
	w, h := num(Width), num(height)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img" aria-labelledby="title desc"`, w, h, w, h)
	b.WriteString(` font-family="-apple-system, BlinkMacSystemFont, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif">` + "\n")
	fmt.Fprintf(&b, "<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n", escape(title), escape(description))
	b.WriteString(`<defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
		`<rect width="5" height="5" fill="#f3f5f7"/><rect width="1.5" height="5" fill="#a8b1bb"/></pattern></defs>` + "\n")
	fmt.Fprintf(&b, `<rect x="0.5" y="0.5" width="%s" height="%s" rx="8" fill="#fff" stroke="%s"/>`+"\n", num(Width-1), num(height-1), frame)
	b.Write(c.body.Bytes())
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// label is text with its look. The zero value is normal text that starts at its place.
type label struct {
	anchor string // middle, end
	color  string
	size   float64
	bold   bool
}

func (c *canvas) text(x, y float64, l label, s string) {
	fmt.Fprintf(&c.body, `<text x="%s" y="%s" font-size="%s"`, num(x), num(y), num(or(l.size, normal)))
	if l.anchor != "" {
		fmt.Fprintf(&c.body, ` text-anchor="%s"`, l.anchor)
	}
	if l.bold {
		c.body.WriteString(` font-weight="600"`)
	}
	fmt.Fprintf(&c.body, ` fill="%s">%s</text>`+"\n", or(l.color, ink), escape(s))
}

// head writes title and subtitle, and returns where they end.
func (c *canvas) head(title, subtitle string) float64 {
	y := padding + large - 3
	c.text(padding, y, label{size: large, bold: true}, title)
	if subtitle != "" {
		y += 22
		c.text(padding, y, label{color: muted}, subtitle)
	}
	return y + 18
}

func (c *canvas) line(x1, y1, x2, y2 float64, color string) {
	fmt.Fprintf(&c.body, `<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s"/>`+"\n",
		num(x1), num(y1), num(x2), num(y2), color)
}

// rect writes a bar, with a text that a browser shows when it is pointed at.
func (c *canvas) rect(x, y, w, h float64, s Style, hint string) {
	fill, stroke := s.Color, ""
	if s.Hatched {
		fill, stroke = "url(#hatch)", ` stroke="#a8b1bb"`
	}
	fmt.Fprintf(&c.body, `<rect x="%s" y="%s" width="%s" height="%s" rx="1.5" fill="%s"%s><title>%s</title></rect>`+"\n",
		num(x), num(y), num(math.Max(w, 1)), num(h), fill, stroke, escape(hint))
}

// whisker writes the range of a bar: a line with a cap at each end.
func (c *canvas) whisker(x1, x2, y, half float64) {
	fmt.Fprintf(&c.body, `<path d="M%s %sV%sM%s %sH%sM%s %sV%s" fill="none" stroke="%s" stroke-opacity="0.75"/>`+"\n",
		num(x1), num(y-half), num(y+half), num(x1), num(y), num(x2), num(x2), num(y-half), num(y+half), ink)
}

// num writes a coordinate, to a tenth of a pixel.
func num(x float64) string {
	return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64)
}

func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a Buffer takes everything
	return b.String()
}

// extent returns the room for a text: more than sans-serif faces take on average.
func extent(s string, size float64) float64 {
	return float64(utf8.RuneCountInString(s)) * size * 0.57
}

func widest(texts []string, size float64) float64 {
	w := 0.0
	for _, s := range texts {
		w = math.Max(w, extent(s, size))
	}
	return w
}

func or[T comparable](v, instead T) T {
	var zero T
	if v == zero {
		return instead
	}
	return v
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
