package main

import (
	"fmt"
	"io"
	"os"
)

// progress tells how far a run is. On a terminal, a line that only says what goes on at
// the moment is written over by the next.
type progress struct {
	out  *os.File
	open bool // a line waits to be written over
}

// say writes a line that stays.
func (p *progress) say(format string, args ...any) {
	p.clear()
	_, _ = io.WriteString(p.out, fmt.Sprintf(format, args...)+"\n") // nobody waits for it
}

// update writes a line that the next one replaces.
func (p *progress) update(format string, args ...any) {
	info, err := p.out.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return
	}
	p.clear()
	_, _ = io.WriteString(p.out, fmt.Sprintf(format, args...))
	p.open = true
}

func (p *progress) clear() {
	if p.open {
		_, _ = io.WriteString(p.out, "\r\x1b[K")
		p.open = false
	}
}
