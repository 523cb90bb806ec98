package affinity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// treeReader reads small files below a root directory and remembers what was
// odd or wrong with them. A file that is not there is neither: which ones a
// kernel has depends on its version, its configuration and the machine.
type treeReader struct {
	root  string
	notes []string
	errs  []error
}

func (r *treeReader) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// malformed says that file, or a part of it, cannot be what it stands for.
func (r *treeReader) malformed(file, want, value string) {
	const longest = 60
	if len(value) > longest {
		value = value[:longest] + "..."
	}
	r.errs = append(r.errs, fmt.Errorf("%s: not %s: %q", file, want, value))
}

// text returns a file without white space at both ends. ok is false if there
// is none that can be read.
func (r *treeReader) text(file string) (text string, ok bool) {
	b, err := os.ReadFile(filepath.Join(r.root, file))
	if err == nil {
		return strings.TrimSpace(string(b)), true
	}
	if !errors.Is(err, fs.ErrNotExist) {
		r.errs = append(r.errs, err)
	}
	return "", false
}

// set reads a file that holds a list. ok is false also if it is malformed.
func (r *treeReader) set(file string) (s Set, ok bool) {
	text, ok := r.text(file)
	if !ok {
		return Set{}, false
	}
	s, err := ParseSet(text)
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("%s: %w", file, err))
		return Set{}, false
	}
	return s, true
}

// number reads a file that holds one decimal number.
func (r *treeReader) number(file string) (n int, ok bool) {
	text, ok := r.text(file)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		r.malformed(file, "a number", text)
		return 0, false
	}
	return n, true
}

// numbered returns the numbers n for which dir has an entry name followed by
// n, such as node0.
func (r *treeReader) numbered(dir, name string) Set {
	entries, err := os.ReadDir(filepath.Join(r.root, dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.errs = append(r.errs, err)
	}
	var s Set
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), name)
		if n, reason := parseNumber(digits); ok && reason == "" && n <= MaxCPU {
			s.addRange(int(n), int(n))
		}
	}
	return s
}
