package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// arrows says which rooms of pinion each room may import; ARCHITECTURE.md draws
// it. A room that is not listed may not exist.
var arrows = map[string][]string{
	"pinion": {"*"}, // main wires them all

	"pinion/affinity":       nil,
	"pinion/engine":         nil,
	"pinion/codec":          nil,
	"pinion/ctxpool":        nil,
	"pinion/sysctl":         nil,
	"pinion/internal/stats": nil,

	"pinion/users":                      {"pinion/codec", "pinion/internal/stats"},
	"pinion/users/sqldb":                {"pinion/users"},
	"pinion/users/rediscache":           {"pinion/users", "pinion/codec", "pinion/internal/stats"},
	"pinion/users/members":              {"pinion/users", "pinion/codec"},
	"pinion/users/members/service":      {"pinion/users", "pinion/users/members", "pinion/codec"},
	"pinion/users/members/memberserver": {"*"}, // a main
	"pinion/internal/testserver":        nil,
	"pinion/internal/full":              {"*"}, // a main

	"pinion/handlers": {
		"pinion/codec", "pinion/ctxpool", "pinion/users",
		"pinion/internal/stats",
	},

	"pinion/internal/accesslog":     {"pinion/codec", "pinion/handlers", "pinion/internal/stats"},
	"pinion/internal/admin":         {"pinion/internal/health", "pinion/internal/listen", "pinion/internal/stats"},
	"pinion/internal/cell":          {"pinion/affinity", "pinion/internal/stats"},
	"pinion/internal/topology":      {"pinion/affinity"},
	"pinion/internal/machine":       nil,
	"pinion/internal/machine/guest": nil,
	"pinion/internal/config":        {"pinion/affinity", "pinion/internal/accesslog", "pinion/internal/listen"},
	"pinion/internal/health":        nil,
	"pinion/internal/listen":        nil,
	"pinion/internal/logsink":       nil,
	"pinion/internal/transport":     {"pinion/engine", "pinion/internal/stats"},
}

// TestArrows reads the imports of every product file. Tests may import what
// they need to test against.
func TestArrows(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || name == "bench") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		room := path.Join("pinion", filepath.ToSlash(filepath.Dir(name)))
		allowed, known := arrows[room]
		if !known {
			t.Errorf("%s: room %s is not in the list of arrows", name, room)
			return nil
		}
		seen[room] = true
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			target, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			ours := strings.HasPrefix(target, "pinion/")
			if ours && !slices.Contains(allowed, target) && !slices.Contains(allowed, "*") {
				t.Errorf("%s: %s must not import %s", name, room, target)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for room := range arrows {
		if !seen[room] {
			t.Errorf("%s is in the list of arrows but has no code", room)
		}
	}
}
