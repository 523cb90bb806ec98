//go:build linux && numa

package guest

import (
	"os"
	"syscall"
	"testing"
)

// TestWrongInput: one line, status 2, and nothing was started.
func TestWrongInput(t *testing.T) {
	for _, tt := range []struct {
		args  []string
		parts []string // of the line
	}{
		{[]string{"-cpus", "8"}, []string{"-cpus", "CPU 8"}},
		{[]string{"-cpus", "0-15"}, []string{"-cpus", "8-15"}},
		{[]string{"-cpus", "3-1"}, []string{"-cpus", "3-1"}},
		{[]string{"-cpus", "0-3,x"}, []string{"-cpus", "x"}},
		{[]string{"-cpus", ","}, []string{"-cpus"}}, // selects nothing
		{[]string{"-cells", "9"}, []string{"-cells", "9"}},
		{[]string{"-cells", "0"}, []string{"-cells", "0"}},
		{[]string{"-cells", "2", "-cpus", "5"}, []string{"-cells", "2"}},
		{[]string{"-cells", "some"}, []string{"-cells", "some"}},
		{[]string{"-steer", "some"}, []string{"-steer", "some"}},
		{[]string{"-cells", "2", "-db", "sqlite::memory:"}, []string{"memory"}},
		{[]string{"-db", "sqlite::memory:"}, []string{"memory"}}, // two cells here
	} {
		refused(t, command(t, tt.args...), tt.parts...)
	}
}

// TestOfflineCPU takes a CPU away, and brings it back.
func TestOfflineCPU(t *testing.T) {
	const file = "/sys/devices/system/cpu/cpu7/online"
	if err := os.WriteFile(file, []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(file, []byte("1"), 0); err != nil {
			t.Error(err)
		}
	})
	refused(t, command(t, "-cpus", "7"), "-cpus", "CPU 7", "offline")
	refused(t, command(t, "-cpus", "0-7"), "-cpus", "CPU 7", "offline")

	p := start(t)
	p.is(t, cell{"0-3", "0", 4}, cell{"4-6", "1", 3})
	p.stop(t, syscall.SIGTERM)
}
