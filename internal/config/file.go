package config

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile is far above any sane file. The parser's time grows with the square of the
// length: a larger one could take minutes.
const maxFile = 64 << 10

// slurp is os.ReadFile with a limit.
func slurp(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s is longer than %s", path, Size(maxFile))
	}
	return text, nil
}

// parseFile walks the syntax tree instead of decoding into a struct: only there every
// key and value has its line, and nothing is converted behind our back.
func parseFile(path string, text []byte, settings []*setting) ([]given, error) {
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if syntax := yaml.Error(nil); errors.As(err, &syntax) && syntax.GetToken() != nil {
		return nil, usagef(at(path, syntax.GetToken().Position.Line), "%s", syntax.GetMessage())
	}
	if err != nil {
		return nil, &UsageError{Source: path, Err: err}
	}
	var all []given
	found := false
	for _, doc := range file.Docs {
		body := doc.Body
		if _, ok := body.(*ast.CommentGroupNode); ok || body == nil {
			continue // nothing but comments, or nothing at all
		}
		if found {
			return nil, usagef(at(path, line(body)), "want one YAML document, here is another")
		}
		found = true
		mapping, ok := body.(*ast.MappingNode)
		if !ok {
			return nil, usagef(at(path, line(body)), "want lines of name: value, got %s", describe(body))
		}
		if all, err = readMapping(path, mapping, settings); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func readMapping(path string, mapping *ast.MappingNode, settings []*setting) ([]given, error) {
	var all []given
	seen := make(map[string]bool)
	for _, member := range mapping.Values {
		where := at(path, line(member.Key))
		name, isText := member.Key.(*ast.StringNode)
		if !isText {
			return nil, usagef(where, "unknown key %q", member.Key.String())
		}
		s := find(settings, name.Value)
		if s == nil || s.noFile {
			return nil, usagef(where, "unknown key %q", name.Value)
		}
		if seen[s.name] {
			return nil, usagef(where, "key %q is repeated", s.name)
		}
		seen[s.name] = true
		where += ": " + s.name
		text, err := scalar(member.Value, s.number)
		if err != nil {
			return nil, &UsageError{Source: where, Err: err}
		}
		all = append(all, given{name: s.name, source: where, text: text})
	}
	return all, nil
}

// scalar is the text of a single value as it stands in the file.
func scalar(n ast.Node, number bool) (string, error) {
	switch n := n.(type) {
	case *ast.IntegerNode:
		return n.Token.Value, nil
	case *ast.FloatNode:
		if !number {
			return n.Token.Value, nil
		}
	case *ast.StringNode:
		if !number {
			return n.Value, nil
		}
	case *ast.LiteralNode:
		if !number {
			return n.Value.Value, nil
		}
	}
	if number {
		return "", fmt.Errorf("want a whole number, got %s", describe(n))
	}
	return "", fmt.Errorf("want a single value, got %s", describe(n))
}

// describe names the kind of n in the words of YAML.
func describe(n ast.Node) string {
	switch n := n.(type) {
	case *ast.NullNode:
		return "nothing"
	case *ast.BoolNode:
		return "the boolean " + n.Token.Value
	case *ast.IntegerNode, *ast.FloatNode:
		return "the number " + n.GetToken().Value
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.AnchorNode, *ast.AliasNode:
		return "an anchor or alias"
	case *ast.TagNode:
		return "a tag"
	}
	return "something else"
}

func line(n ast.Node) int {
	if tok := n.GetToken(); tok != nil && tok.Position != nil {
		return tok.Position.Line
	}
	return 1
}

func at(path string, line int) string { return fmt.Sprintf("%s:%d", path, line) }
