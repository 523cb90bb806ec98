package page

import "strings"

// table is one in Markdown. Cells are Markdown already: what comes from the data goes
// through prose or code.
type table struct {
	head []string
	rows [][]string
}

// newTable makes a table of columns; one whose name starts with ">" is aligned right.
func newTable(head ...string) *table { return &table{head: head} }

// broken is where a line may end in a cell that is aligned right, whose spaces else keep it
// in one.
const broken = "\n"

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(b *strings.Builder) {
	b.WriteByte('|')
	for _, h := range t.head {
		b.WriteString(" " + strings.TrimPrefix(h, ">") + " |")
	}
	b.WriteString("\n|")
	for _, h := range t.head {
		if strings.HasPrefix(h, ">") {
			b.WriteString("--:|")
		} else {
			b.WriteString(":--|")
		}
	}
	for _, row := range t.rows {
		b.WriteString("\n|")
		for i, cell := range row {
			if strings.HasPrefix(t.head[i], ">") { // figures stay in one line
				cell = strings.ReplaceAll(cell, " ", "\u00a0")
			}
			cell = strings.ReplaceAll(cell, broken, " ")
			// Also right within code: tables are split before anything else.
			b.WriteString(" " + strings.ReplaceAll(cell, "|", `\|`) + " |")
		}
	}
	b.WriteString("\n\n")
}

// prose makes text of the data fit for a line of Markdown. What it puts in backticks stays
// code; nothing of it is HTML.
func prose(s string) string {
	parts := strings.Split(strings.Join(strings.Fields(s), " "), "`")
	mark := "`"
	if len(parts)%2 == 0 { // a backtick without a partner
		mark = "\\`"
	}
	html := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	for i := range parts {
		if i%2 == 0 || mark != "`" {
			parts[i] = html.Replace(parts[i])
		}
	}
	return strings.Join(parts, mark)
}

// code makes a code span of one line.
func code(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if s == "" {
		return none
	}
	if strings.Contains(s, "`") {
		return "`` " + s + " ``"
	}
	return "`" + s + "`"
}
