package topology

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Widths in columns.
const (
	lineWidth = 80 // of text, in which words are not broken
	cellWidth = 40 // of a cell of a table
)

// table is rows of cells; the first row is the header.
type table [][]string

// write pads the cells so that columns are aligned, and gives a long cell
// several lines. notes, if any, stand under the rows after the header.
func (t table) write(b *bytes.Buffer, notes []string) {
	var widths []int
	folded := make([][][]string, len(t))
	for i, row := range t {
		for j, cell := range row {
			lines := fold(cell, cellWidth)
			folded[i] = append(folded[i], lines)
			if j == len(widths) {
				widths = append(widths, 0)
			}
			for _, line := range lines {
				widths[j] = max(widths[j], utf8.RuneCountInString(line))
			}
		}
	}
	for i, row := range folded {
		height := 0
		for _, lines := range row {
			height = max(height, len(lines))
		}
		for y := range height {
			var line strings.Builder
			for j, lines := range row {
				cell := ""
				if y < len(lines) {
					cell = lines[y]
				}
				line.WriteString("  " + cell)
				line.WriteString(strings.Repeat(" ", widths[j]-utf8.RuneCountInString(cell)))
			}
			b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		}
		if i > 0 && i <= len(notes) {
			hang(b, strings.Repeat(" ", 4+widths[0]), notes[i-1])
		}
	}
}

// hang writes text after label, its further lines below its first.
func hang(b *bytes.Buffer, label, text string) {
	indent := utf8.RuneCountInString(label)
	for i, line := range fold(text, lineWidth-indent) {
		if i > 0 {
			label = strings.Repeat(" ", indent)
		}
		b.WriteString(strings.TrimRight(label+line, " ") + "\n")
	}
}

// fold cuts text into lines of at most width columns, after a space or a comma.
// A word that is longer stays whole: it may be a path somebody wants to copy.
func fold(text string, width int) []string {
	var lines []string
	line, columns := "", 0
	for text != "" {
		end := strings.IndexAny(text, " ,") + 1
		if end == 0 {
			end = len(text)
		}
		word := text[:end]
		text = text[end:]
		// The space at the end of a line takes no room.
		n := utf8.RuneCountInString(word)
		if line != "" && columns+utf8.RuneCountInString(strings.TrimRight(word, " ")) > width {
			lines = append(lines, strings.TrimRight(line, " "))
			line, columns = "", 0
		}
		line += word
		columns += n
	}
	return append(lines, strings.TrimRight(line, " "))
}
