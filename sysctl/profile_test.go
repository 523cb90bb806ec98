package sysctl

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// setting is a key of a profile and the comment above it.
type setting struct {
	line   int
	value  string
	fields map[string]string
}

// profile reads a file of settings; a paragraph is a comment and at most one
// key.
func profile(t *testing.T, file string) map[string]setting {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]setting{}
	fieldLine := regexp.MustCompile(`^# ([a-z]+): +(\S.*)$`)
	fields, field := map[string]string{}, ""
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case line == "":
			fields, field = map[string]string{}, ""
		case fieldLine.MatchString(line):
			m := fieldLine.FindStringSubmatch(line)
			field = m[1]
			if fields[field] != "" {
				t.Errorf("%s:%d: %s said twice", file, i+1, field)
			}
			fields[field] = m[2]
		case strings.HasPrefix(line, "#"):
			if field != "" {
				fields[field] += " " + strings.TrimSpace(line[1:])
			}
		default:
			key, value, ok := strings.Cut(line, " = ")
			if !ok || !regexp.MustCompile(`^[a-z0-9_]+(\.[a-zA-Z0-9_]+)+$`).MatchString(key) || value != strings.TrimSpace(value) || value == "" {
				t.Errorf("%s:%d: not a setting: %q", file, i+1, line)
				continue
			}
			if _, ok := settings[key]; ok {
				t.Errorf("%s:%d: %s is set twice", file, i+1, key)
			}
			settings[key] = setting{line: i + 1, value: value, fields: fields}
			fields, field = map[string]string{}, ""
		}
	}
	if len(settings) == 0 {
		t.Fatalf("%s sets nothing", file)
	}
	return settings
}

func profiles() []string { return []string{"bare-metal.conf", "container.conf"} }

func TestEveryProfileIsTested(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".conf") {
			found = append(found, e.Name())
		}
	}
	if !slices.Equal(found, profiles()) {
		t.Errorf("found %v, the tests know %v", found, profiles())
	}
}

func TestEverySettingIsExplained(t *testing.T) {
	source := regexp.MustCompile(`Documentation/[a-z/-]+\.rst, |[a-z]+\([1-8]\), `)
	for _, file := range profiles() {
		for key, s := range profile(t, file) {
			for _, name := range []string{"unit", "default", "why", "source"} {
				if s.fields[name] == "" {
					t.Errorf("%s:%d: %s has no %s", file, s.line, key, name)
				}
			}
			if !source.MatchString(s.fields["source"]) {
				t.Errorf("%s:%d: %s: source %q names no section", file, s.line, key, s.fields["source"])
			}
			if first, _, _ := strings.Cut(s.fields["default"], " ("); first == s.value {
				t.Errorf("%s:%d: %s sets the kernel's default", file, s.line, key)
			}
		}
	}
}

// A key left out with a reason and set all the same would be a lie.
func TestLeftOutIsLeftOut(t *testing.T) {
	for _, file := range profiles() {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, out, ok := strings.Cut(string(text), "\n# Left out on purpose\n")
		if !ok {
			t.Errorf("%s does not say what it leaves out", file)
			continue
		}
		for key := range profile(t, file) {
			if regexp.MustCompile(`(?m)^# .*\b` + regexp.QuoteMeta(key) + `[,:]`).MatchString(out) {
				t.Errorf("%s sets %s and says it is left out", file, key)
			}
		}
	}
}

// A container is a machine's subset, with the same values.
func TestContainerAgreesWithBareMetal(t *testing.T) {
	machine := profile(t, "bare-metal.conf")
	for key, s := range profile(t, "container.conf") {
		if m, ok := machine[key]; !ok || m.value != s.value || m.fields["default"] != s.fields["default"] {
			t.Errorf("container.conf:%d: %s = %s (default %s), bare-metal.conf has %q (default %s)",
				s.line, key, s.value, s.fields["default"], m.value, m.fields["default"])
		}
	}
}
