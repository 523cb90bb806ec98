package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFile(t *testing.T) {
	for _, file := range []string{
		"addr: 1.2.3.4:5\ndemo: 7\n",
		"---\n# comment\naddr: '1.2.3.4:5' # comment\n\ndemo: 7\n...\n",
		"addr: \"1.2.3.4:5\"\r\ndemo: 7\r\n",
		`{"addr": "1.2.3.4:5", "demo": 7}`,
		"demo: 7\naddr: >-\n  1.2.3.4:5\n",
		"demo: +7\naddr: |-\n  1.2.3.4:5\n",
	} {
		cfg, _, err := parse(t, file, nil, nil)
		if err != nil || cfg.Addr != "1.2.3.4:5" || cfg.Demo != 7 {
			t.Errorf("%q: addr %s, demo %d, %v", file, cfg.Addr, cfg.Demo, err)
		}
	}
	for _, file := range []string{"# nothing\n", "---\n", "\n\n", "---\n# nothing\n"} {
		if _, _, err := parse(t, file, nil, nil); err != nil {
			t.Errorf("%q: %v", file, err)
		}
	}
}

func TestWrongFiles(t *testing.T) {
	for _, tc := range []struct{ file, want string }{
		{"demo: 1\n\nfoo: 1\n", `pinion.yaml:3: unknown key "foo"`},
		{"Demo: 1", `pinion.yaml:1: unknown key "Demo"`},
		{"config: other.yaml", `pinion.yaml:1: unknown key "config"`},
		{"1: 2", `pinion.yaml:1: unknown key "1"`},
		{"<<: {addr: ':1'}", `pinion.yaml:1: unknown key "<<"`},
		{"addr: :1\ndemo: 1\naddr: :2\n", `pinion.yaml:3: key "addr" is repeated`},
		{"addr: :1\n\"addr\": :1\n", `pinion.yaml:2: key "addr" is repeated`},

		{"demo: '1'", "pinion.yaml:1: demo: want a whole number, got text"},
		{"demo: 1.5", "pinion.yaml:1: demo: want a whole number, got the number 1.5"},
		{"demo: true", "pinion.yaml:1: demo: want a whole number, got the boolean true"},
		{"demo: 0x10", `pinion.yaml:1: demo: want a whole number, got "0x10"`},
		{"max-conns:", "pinion.yaml:1: max-conns: want a whole number, got nothing"},
		{"max-conns: |\n  1\n", "pinion.yaml:1: max-conns: want a whole number, got text"},
		{"demo: 1\nadmin:\n", "pinion.yaml:2: admin: want a single value, got nothing"},
		{"admin: ~", "pinion.yaml:1: admin: want a single value, got nothing"},
		{"access-log: false", "pinion.yaml:1: access-log: want a single value, got the boolean false"},
		{"cpus: [0, 1]", "pinion.yaml:1: cpus: want a single value, got a list"},
		{"cpus:\n  - 0\n", "pinion.yaml:1: cpus: want a single value, got a list"},
		{"addr:\n  port: 1\n", "pinion.yaml:1: addr: want a single value, got a mapping"},
		{"addr: {port: 1}", "pinion.yaml:1: addr: want a single value, got a mapping"},
		{"addr: &a ':1'\nadmin: *a\n", "pinion.yaml:1: addr: want a single value, got an anchor or alias"},
		{"addr: !!str ':1'", "pinion.yaml:1: addr: want a single value, got a tag"},
		{"l1-bytes: .inf", "pinion.yaml:1: l1-bytes: want a single value, got something else"},

		{"- addr", "pinion.yaml:1: want lines of name: value, got a list"},
		{"# x\naddr", "pinion.yaml:2: want lines of name: value, got text"},
		{"7", "pinion.yaml:1: want lines of name: value, got the number 7"},
		{"demo: 1\n---\ndemo: 2\n", "pinion.yaml:3: want one YAML document, here is another"},
	} {
		if got := refused(t, tc.file, nil, nil); got != tc.want {
			t.Errorf("%q:\n got %s\nwant %s", tc.file, got, tc.want)
		}
	}
	// The rest of the line is the parser's.
	for file, prefix := range map[string]string{
		"demo: 1\naddr: [\n": "pinion.yaml:2: ",
		"demo: 1\na: b: c\n": "pinion.yaml:2: ",
		"demo: 1\n\tx: 1\n":  "pinion.yaml:2: ",
		"addr: \"a\n":        "pinion.yaml:1: ",
	} {
		if got := refused(t, file, nil, nil); !strings.HasPrefix(got, prefix) || len(got) == len(prefix) {
			t.Errorf("%q: %s, want %s and a reason", file, got, prefix)
		}
	}
}

func TestFileThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	if got := refused(t, "", nil, []string{"-config", dir}); !strings.HasPrefix(got, "-config: ") || !strings.Contains(got, dir) {
		t.Errorf("a directory: %s", got)
	}
	big := filepath.Join(dir, "big.yaml")
	if err := os.WriteFile(big, []byte(strings.Repeat("#\n", maxFile)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := refused(t, "", nil, []string{"-config", big}), "-config: "+big+" is longer than 64KiB"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzFile checks that any file gives a Config or one line that names the file.
func FuzzFile(f *testing.F) {
	for _, s := range []string{
		"", "addr: :1\ndemo: 7", "---\na: b", "demo: '1'", "cpus: [0, 1]", "addr: {port: 1}", "addr: &a ':1'\nadmin: *a",
		"<<: {}", "? [a]\n: b", "a: |\n  b", "\xff", "\t", "addr: \"\\x00\"", "{a", "- - - -", "!!map {}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := defaults()
		settings := c.settings()
		file, err := parseFile("f.yaml", []byte(text), settings)
		if err == nil {
			err = apply(file, settings)
		}
		if err == nil {
			return
		}
		var usage *UsageError
		if !errors.As(err, &usage) || !strings.HasPrefix(err.Error(), "f.yaml") || strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("%T: %q", err, err)
		}
	})
}
