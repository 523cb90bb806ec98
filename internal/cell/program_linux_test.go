package cell

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestProgramFileChanges: an upgrade, or a package that was removed, must not make the
// first end of a cell the last of all.
func TestProgramFileChanges(t *testing.T) {
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(file string) error{
		"deleted": os.Remove,
		"replaced": func(file string) error {
			other := file + ".new"
			if err := os.WriteFile(other, []byte("#!/bin/sh\nexit 3\n"), 0o755); err != nil {
				return err
			}
			return os.Rename(other, file)
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "program")
			if err := os.WriteFile(file, program, 0o755); err != nil {
				t.Fatal(err)
			}
			cmd, cells, rest := supervisorProcess(t, file, "1")
			if err := change(file); err != nil {
				t.Fatal(err)
			}
			for i, pid := range cells {
				kill(t, pid, syscall.SIGKILL)
				var log strings.Builder
				for back := false; !back; back = strings.Contains(rest.Text(), `msg="cell ready"`) {
					if !rest.Scan() {
						t.Fatalf("cell %d did not come back:\n%s", i, &log)
					}
					log.WriteString(rest.Text() + "\n")
				}
			}
			kill(t, cmd.Process.Pid, syscall.SIGTERM)
			for rest.Scan() {
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}
