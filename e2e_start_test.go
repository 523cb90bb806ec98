package main

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestEnvironment: a value that turns out wrong late is told by where it came
// from.
func TestEnvironment(t *testing.T) {
	cmd := command(t)
	cmd.Env = append(cmd.Env, "PINION_CPUS=4095")
	out, err := cmd.CombinedOutput()
	if err == nil || !bytes.HasPrefix(out, []byte("server: PINION_CPUS: CPU 4095 does not exist")) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestWrongUse: one line on stderr, status 2, and nothing was started.
func TestWrongUse(t *testing.T) {
	yaml := filepath.Join(t.TempDir(), "pinion.yaml")
	if err := os.WriteFile(yaml, []byte("addr: 127.0.0.1:0\nadddr: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("ci=abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string // in the line
	}{
		{[]string{"-cpus", "0-"}, "-cpus"},
		{[]string{"-cpus", "4095"}, "-cpus: CPU 4095 does not exist"},
		{[]string{"-cpus", ","}, "-cpus"},
		{[]string{"-db", "ftp://x"}, "ftp"},
		{[]string{"-addr", "nonsense"}, "nonsense"},
		{[]string{"-demo", "-1"}, "-demo"},
		{[]string{"-engine", "turbo"}, "turbo"},
		{[]string{"-access-log", "some"}, "some"},
		{[]string{"-l1-bytes", "1"}, "-l1-bytes"},
		{[]string{"-config", yaml}, `pinion.yaml:2: unknown key "adddr"`},
		{[]string{"-config", yaml + "x"}, "pinion.yamlx"},
		{[]string{"-tokens", tokens}, "line 1"},
		{[]string{"-demo", "x\ny"}, "-demo"},
		{[]string{"-nonsense"}, "-nonsense"},
		{[]string{"nonsense"}, "nonsense"},
	} {
		fails(t, 2, c.want, c.args...)
	}
}

// TestCannotStart: what is wrong with the host is status 1, and one line too.
func TestCannotStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	corrupt := filepath.Join(t.TempDir(), "corrupt.db")
	if err := os.WriteFile(corrupt, bytes.Repeat([]byte("not a database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := taken.Addr().String()
	fails(t, 1, addr, "-addr", addr, "-db", "sqlite::memory:", "-admin", "")
	fails(t, 1, addr, "-addr", "127.0.0.1:0", "-db", "sqlite::memory:", "-admin", addr)
	fails(t, 1, corrupt, "-db", "sqlite:"+corrupt, "-addr", "127.0.0.1:0", "-admin", "")
	fails(t, 1, "/proc/no where/x.db", "-db", "sqlite:/proc/no\nwhere/x.db", "-addr", "127.0.0.1:0", "-admin", "")
	fails(t, 1, "/proc/nowhere/x.db", "-db", "sqlite:/proc/nowhere/x.db", "-addr", "127.0.0.1:0", "-admin", "")
}

// TestReadOnlyDatabase: a database that can be read but not written is told at
// the start, not by the first write that fails.
func TestReadOnlyDatabase(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "ro.db")
	stop(t, start(t, "-db", "sqlite:"+db, "-demo", "5"))
	if err := os.Chmod(db, 0o444); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "-db", "sqlite:"+db, "-addr", "127.0.0.1:0", "-admin", "")
	if os.Getuid() == 0 { // who may write to everything
		for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
			if err := os.Chmod(d, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(binaryDir, 0o755); err != nil {
			t.Fatal(err)
		}
		asNobody(cmd)
	}
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !bytes.Contains(out, []byte("server: open database "+db)) {
		t.Errorf("%v: %s", err, out)
	}
}

// fails runs the server and expects it to end with code after one line.
func fails(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	cmd := command(t, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != code {
		t.Errorf("%v: %v, want exit status %d; it said:\n%s", args, err, code, &stderr)
		return
	}
	var told []string // all but the ordinary log
	for line := range strings.Lines(stderr.String()) {
		if !strings.HasPrefix(line, "time=") {
			told = append(told, line)
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], want) {
		t.Errorf("%v: want one line with %q, got:\n%s", args, want, &stderr)
	}
	if code == 2 && (stdout.Len() > 0 || strings.Contains(stderr.String(), "serving")) {
		t.Errorf("%v: it did more than complain:\n%s%s", args, &stdout, &stderr)
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"--help"}, {"help"}} {
		out, err := command(t, args...).Output()
		if err != nil || !bytes.Contains(out, []byte("-addr")) || !bytes.Contains(out, []byte("PINION_")) {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	out, err := command(t, "version").Output()
	if err != nil || !strings.HasPrefix(string(out), "pinion e2e ") {
		t.Errorf("version: %v %q", err, out)
	}
}
