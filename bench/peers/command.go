package peers

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed nginx.conf haproxy.cfg
var configurations embed.FS

// Options say how a peer is to be started.
type Options struct {
	Addr    string // where to serve, host:port
	Admin   string // private port of a server that has one; empty: none
	Workers int    // how many CPUs it has
	Users   string // file that Fixture made
	Dir     string // for what it writes
	// Close is for scenarios in which requests ask for the end of their connection, which
	// the floor has to be told.
	Close bool
}

// Command returns the command that starts the peer, and writes its configuration.
func (p *Peer) Command(binary string, o Options) ([]string, error) {
	switch p.Name {
	case "pinion":
		return []string{
			binary, "-addr", o.Addr, "-admin", o.Admin, "-db", "sqlite::memory:", "-demo", fmt.Sprint(FixtureUsers), "-cells", "off",
		}, nil
	case "nginx":
		path, err := o.configure("nginx.conf")
		return []string{binary, "-p", o.Dir, "-e", "stderr", "-c", path}, err
	case "HAProxy":
		path, err := o.configure("haproxy.cfg")
		return []string{binary, "-db", "-f", path}, err
	case "floor":
		_, port, err := net.SplitHostPort(o.Addr)
		if err != nil {
			return nil, err
		}
		if o.Close {
			return []string{binary, port, "close"}, nil
		}
		return []string{binary, port}, nil
	default:
		return append([]string{binary, "-addr", o.Addr, "-users", o.Users}, p.args...), nil
	}
}

// configure fills a template in, and returns where the result is.
func (o Options) configure(name string) (string, error) {
	t, err := template.ParseFS(configurations, name)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	if err := t.Execute(&text, o); err != nil {
		return "", err
	}
	path := filepath.Join(o.Dir, name)
	return path, os.WriteFile(path, text.Bytes(), 0o644)
}

// FixtureUsers is how many users the product has, with ids from 1.
const FixtureUsers = 1000

// Fixture asks the product at addr for its users, and leaves in a file those of its answer
// that all peers can answer byte by byte alike: encoding/json escapes <, > and & in
// strings, and codec does not.
func Fixture(ctx context.Context, addr, file string) error {
	ids := make([]string, FixtureUsers)
	for i := range ids {
		ids[i] = fmt.Sprint(i + 1)
	}
	body := `{"ids":[` + strings.Join(ids, ",") + `]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/api/users/lookup", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("ask for users: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("ask for users: %w", err)
	}
	var found struct {
		Users   []json.RawMessage `json:"users"`
		Missing []int64           `json:"missing"`
	}
	if err := json.Unmarshal(text, &found); err != nil || resp.StatusCode != http.StatusOK || len(found.Users) != FixtureUsers {
		return fmt.Errorf("ask for users: status %s: %d users, want %d: %w: %.200s", resp.Status, len(found.Users), FixtureUsers, err, text)
	}
	alike := bytes.NewBufferString(`{"users":[`)
	for _, u := range found.Users {
		if bytes.ContainsAny(u, "<>&\u2028\u2029") {
			continue
		}
		if !bytes.HasSuffix(alike.Bytes(), []byte("[")) {
			alike.WriteByte(',')
		}
		alike.Write(u)
	}
	alike.WriteString(`],"missing":[]}`)
	return os.WriteFile(file, alike.Bytes(), 0o644)
}
