package peers

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Binary is a peer's program.
type Binary struct {
	Path    string
	SHA256  string
	Version string
}

// Build builds what is ours, into dir, and finds what is not. root is a checkout of
// pinion. The binaries go by the names of the peers.
func Build(ctx context.Context, root, dir string, all []Peer) (map[string]Binary, error) {
	binaries := make(map[string]Binary, len(all))
	for i := range all {
		p := &all[i]
		b := Binary{Path: filepath.Join(dir, "peer-"+strings.ReplaceAll(strings.ToLower(p.Name), "/", ""))}
		var err error
		switch {
		case p.Name == "pinion":
			err = goBuild(ctx, root, b.Path, ".")
		case p.folder != "":
			err = goBuild(ctx, filepath.Join(root, "bench"), b.Path, "./peers/"+p.folder)
		case p.Name == "floor":
			err = command(ctx, "gcc", "-O2", "-Wall", "-Wextra", "-o", b.Path, filepath.Join(root, "bench", "floor", "floor.c"))
		default:
			b.Path, err = find(strings.ToLower(p.Name))
		}
		if err == nil {
			b.SHA256, err = hash(b.Path)
		}
		if err == nil {
			b.Version, err = version(ctx, p, b.Path)
		}
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", p.Name, err)
		}
		binaries[p.Name] = b
	}
	return binaries, nil
}

func goBuild(ctx context.Context, dir, out, pkg string) error {
	return command(ctx, "go", "build", "-C", dir, "-trimpath", "-ldflags", "-s -w", "-o", out, pkg)
}

func command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// find looks for a server of the system. Debian has servers where only root looks.
func find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		return "", fmt.Errorf("install the package %s: %w", name, err)
	}
	return path, nil
}

func hash(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// version returns that of the module a peer is about, or what the program says of itself.
func version(ctx context.Context, p *Peer, path string) (string, error) {
	switch {
	case p.Name == "floor":
		return "", nil
	case p.Language != "Go":
		out, err := exec.CommandContext(ctx, path, "-v").CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%s -v: %w: %s", path, err, out)
		}
		return regexp.MustCompile(`\d+\.\d+\.\d+`).FindString(string(out)), nil
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "", err
	}
	if p.module == "" {
		return info.GoVersion, nil
	}
	for _, m := range info.Deps {
		if m.Path == p.module && m.Replace == nil {
			return m.Version, nil
		}
	}
	return "this tree", nil // pinion itself
}
