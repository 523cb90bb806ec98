package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pinion/internal/config"
)

// volatile is what differs from one run to the next: the time of a write, and
// ids that were made up.
var volatile = regexp.MustCompile(`"(created_at|updated_at)":"202[6-9][^"]*"|"request_id":"[0-9a-f]{32}"`)

// TestReadme makes the README's requests and compares the answers.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, console, ok := strings.Cut(string(text), "```console\n")
	if !ok {
		t.Fatal("no console block")
	}
	console, _, _ = strings.Cut(console, "```")
	p := start(t, "-demo", "10000", "-db", "sqlite::memory:")
	calls := 0
	for example := range strings.SplitSeq(strings.TrimSpace(console), "\n\n") {
		command, want, _ := strings.Cut(example, "\n")
		words := shellWords(strings.TrimPrefix(command, "$ curl -s "))
		method, body, headers := "GET", "", []string(nil)
		for i := 1; i+1 < len(words); i += 2 {
			switch words[i] {
			case "-H":
				headers = append(headers, words[i+1])
			case "-d":
				method, body = "POST", words[i+1]
			default:
				t.Fatalf("%s: this test does not know %s", command, words[i])
			}
		}
		target := strings.Replace(words[0], "localhost:8080", p.url, 1)
		_, got := do(t, method, target, body, headers...)
		if volatile.ReplaceAllString(got, "…") != volatile.ReplaceAllString(want, "…") {
			t.Errorf("%s\ngot  %s\nwant %s", command, got, want)
		}
		calls++
	}
	if calls != 5 {
		t.Errorf("%d requests, want 5", calls)
	}
}

// shellWords splits a command line in which only single quotes are special.
func shellWords(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// TestReadmeFlags: the table has every flag of -help, and no other.
func TestReadmeFlags(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var help strings.Builder
	if _, err := config.Parse([]string{"-help"}, nil, &help); err == nil {
		t.Fatal("no help")
	}
	flags := func(pattern, text string) string {
		var names []string
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		return strings.Join(names, " ")
	}
	got := flags("(?m)^\\| `-([a-z0-9-]+)`", string(text))
	want := flags(`(?m)^  -([a-z0-9-]+) `, help.String())
	if got != want || got == "" {
		t.Errorf("README: %s\nhelp:   %s", got, want)
	}
}

// TestLinks: what the documents point to is there.
func TestLinks(t *testing.T) {
	for _, doc := range []string{
		"README.md", "ARCHITECTURE.md", "CHANGELOG.md", "docs/rationale.md", "docs/reliability.md", "bench/README.md",
		"docs/benchmarks/README.md", "docs/benchmarks/engine.md", "docs/benchmarks/users.md",
	} {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), m[1])); err != nil {
				t.Errorf("%s: %v", doc, err)
			}
		}
	}
}
