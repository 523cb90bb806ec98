package config

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

const preamble = `pinion serves user profiles as JSON over HTTP.

Usage:
  server [flags]                     serve
  server topology [-json] [flags]    print CPUs, NUMA nodes and limits, and what
                                     -cpus and -cells would do here
  server version                     print the version
  server help                        print this

Every flag can also be given in the environment (-access-log as
PINION_ACCESS_LOG, and so on) and, but for -config, by its name in the YAML file
of -config. A flag beats the environment, which beats the file.
`

const epilogue = `
A SIZE is in bytes or has a unit: 64MB, 256MiB. A TIME has one: 500ms, 10s, 1m.
`

const (
	columns = 80 // of the narrowest terminal
	indent  = 4  // spaces before and after the names
)

// printHelp writes what settings there are, by group.
func printHelp(w io.Writer, settings []*setting) error {
	width := 0
	for _, s := range settings {
		width = max(width, len("- ")+len(s.name)+len(s.arg))
	}
	var b bytes.Buffer
	b.WriteString(preamble)
	group := ""
	for _, s := range settings {
		if s.group != group {
			group = s.group
			fmt.Fprintf(&b, "\n%s:\n", group)
		}
		def := s.def
		if def == "" {
			def = s.value.String()
		}
		left := "-" + s.name + " " + s.arg
		for _, line := range wrap(s.help+" (default "+def+")", columns-width-indent) {
			fmt.Fprintf(&b, "  %-*s  %s\n", width, left, line)
			left = ""
		}
	}
	b.WriteString(epilogue)
	_, err := w.Write(b.Bytes())
	return err
}

// wrap breaks text between words into lines of at most width bytes.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
