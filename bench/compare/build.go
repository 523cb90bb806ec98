package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"pinion/bench/peers"
	"pinion/bench/scenario"
)

// side is one of the two trees.
type side struct {
	name            string // as printed
	product, engine scenario.Subject
}

// build builds both peers of a tree. The engine peer is that of bench, whatever tree it is
// built against, so that both do the same. Where it does not fit a tree, it is the tree's
// own, and where there is none it is left out: its Binary is then empty.
func build(ctx context.Context, name, bench, root, dir string) (*side, error) {
	s := &side{name: name}
	for _, p := range peers.All() {
		switch p.Name {
		case "pinion":
			s.product = scenario.Subject{Peer: p, Name: name, Binary: filepath.Join(dir, name+"-server")}
		case "engine":
			s.engine = scenario.Subject{Peer: p, Name: name, Binary: filepath.Join(dir, name+"-engine")}
		}
	}
	mod, err := modFile(bench, root, filepath.Join(dir, name+".mod"))
	if err != nil {
		return nil, err
	}
	if err := compile(ctx, s.product.Binary, "-C", root, "."); err != nil {
		return nil, fmt.Errorf("build %s: %w", name, err)
	}
	err = compile(ctx, s.engine.Binary, "-C", bench, "-mod=mod", "-modfile", mod, "./peers/pinion")
	if err == nil || ctx.Err() != nil {
		return s, err
	}
	if own := compile(ctx, s.engine.Binary, "-C", filepath.Join(root, "bench"), "./peers/pinion"); own == nil {
		fmt.Fprintf(os.Stderr, "NOTE: this tree's engine peer does not fit %s, which is measured with its own\n", name)
		return s, nil
	}
	fmt.Fprintf(os.Stderr, "NOTE: no engine peer fits %s, so what it is measured with is left out: %v\n", name, err)
	s.engine.Binary = ""
	return s, nil
}

// compile builds a program as the product is built for release. The last argument is its
// package.
func compile(ctx context.Context, binary string, args ...string) error {
	chdir, rest := args[:2], args[2:] // -C must come first
	args = slices.Concat([]string{"build"}, chdir, []string{"-trimpath", "-ldflags", "-s -w", "-o", binary}, rest)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// modFile writes the go.mod of bench with another tree as the product, and its go.sum
// beside it.
func modFile(bench, root, path string) (string, error) {
	mod, err := os.ReadFile(filepath.Join(bench, "go.mod"))
	if err != nil {
		return "", err
	}
	replace := regexp.MustCompile(`(?m)^replace pinion => .*$`)
	if !replace.Match(mod) {
		return "", fmt.Errorf("%s/go.mod does not say where pinion is", bench)
	}
	sum, err := os.ReadFile(filepath.Join(bench, "go.sum"))
	if err != nil {
		return "", err
	}
	mod = replace.ReplaceAllLiteral(mod, []byte("replace pinion => "+root))
	if err := os.WriteFile(path, mod, 0o600); err != nil {
		return "", err
	}
	return path, os.WriteFile(strings.TrimSuffix(path, ".mod")+".sum", sum, 0o600)
}

// checkout lays out a commit in a directory. remove undoes it.
func checkout(ctx context.Context, root, ref, dir string) (remove func(), err error) {
	git := func(args ...string) error {
		if out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
		}
		return nil
	}
	// Without --quiet it says what is wrong with the name.
	if err := git("rev-parse", "--verify", ref+"^{commit}"); err != nil {
		return nil, fmt.Errorf("-ref %s is no commit: %w", ref, err)
	}
	if err := git("worktree", "add", "--detach", "--quiet", dir, ref); err != nil {
		return nil, err
	}
	return func() {
		// Also when the run was interrupted, so not under ctx.
		_ = exec.Command("git", "-C", root, "worktree", "remove", "--force", dir).Run()
	}, nil
}
