package sqldb

import (
	"database/sql"
	"fmt"
	"strings"
)

// number is what a column of numbers is scanned into: database/sql takes reflection for an
// int64, and goes by way of text for an int. valid is false for NULL.
type number struct {
	int64
	valid bool
}

// Scan implements sql.Scanner.
func (n *number) Scan(value any) error {
	if n.int64, n.valid = value.(int64); !n.valid && value != nil {
		return fmt.Errorf("a %T where a number should be", value)
	}
	return nil
}

// wordsSize is how much of the texts of a list is kept together.
const wordsSize = 16 << 10

// words keeps the texts of many rows in few pieces of memory. A piece stays for as long as
// one of its texts does, so it is for texts that are soon given up together.
type words struct{ piece strings.Builder }

// keep returns a copy of text.
func (w *words) keep(text sql.RawBytes) string {
	if w.piece.Cap()-w.piece.Len() < len(text) {
		w.piece = strings.Builder{}
		w.piece.Grow(max(wordsSize, len(text)))
	}
	from := w.piece.Len()
	w.piece.Write(text)
	return w.piece.String()[from:]
}
