//go:build linux && numa

package guest

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// cgroup makes a cgroup with the given limits and returns a function that puts a
// command into it.
func cgroup(t *testing.T, limits map[string]string) func(*exec.Cmd) *exec.Cmd {
	t.Helper()
	dir, err := os.MkdirTemp(cgroupRoot, "limited-")
	if err != nil {
		t.Fatal(err)
	}
	for file, limit := range limits {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(limit), 0); err != nil {
			t.Fatal(err)
		}
	}
	handle, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = handle.Close()
		// Its processes have been reaped, or it could not be removed.
		if err := syscall.Rmdir(dir); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	})
	return func(cmd *exec.Cmd) *exec.Cmd {
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(handle.Fd())}
		return cmd
	}
}

// TestQuota: a quota bounds GOMAXPROCS, rounded down, and the number of cells; cells
// share it by their CPUs.
func TestQuota(t *testing.T) {
	for _, tt := range []struct {
		name, quota string
		args        []string
		cells       []cell
		reason      string // in the log
	}{
		{"two CPUs", "150000 100000", []string{"-cpus", "0-1"}, []cell{{"0-1", "0", 1}}, `gomaxprocs=1 .*1\.5 CPUs.*limited-.*/cpu\.max`},
		{"less than two nodes", "150000 100000", nil, []cell{{"0-7", "", 1}}, `gomaxprocs=1 .*1\.5 CPUs.*limited-.*/cpu\.max`},
		{"two nodes", "400000 100000", nil, []cell{{"0-3", "0", 2}, {"4-7", "1", 2}}, `gomaxprocs=2 .*4 CPUs.*limited-.*/cpu\.max`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := cgroup(t, map[string]string{"cpu.max": tt.quota})
			p := launch(t, in(command(t, tt.args...)))
			p.is(t, tt.cells...)
			p.find(t, `msg="cpus decided".*`+tt.reason)
			p.stop(t, syscall.SIGTERM)
		})
	}
}

// TestCPUSet: a cpuset bounds what -cpus may name, and what it means not to give it.
func TestCPUSet(t *testing.T) {
	in := cgroup(t, map[string]string{"cpuset.cpus": "0-3,6"})
	refused(t, in(command(t, "-cpus", "4")), "-cpus", "CPU 4", "cpuset")
	refused(t, in(command(t, "-cpus", "0-7")), "-cpus", "4-5,7", "cpuset")

	p := launch(t, in(command(t)))
	p.is(t, cell{"0-3", "0", 4}, cell{"6", "1", 1})
	p.steers(t, byNode)
	p.stop(t, syscall.SIGTERM)

	in = cgroup(t, map[string]string{"cpuset.cpus": "4-7", "cpuset.mems": "0"})
	p = launch(t, in(command(t)))
	p.is(t, cell{"4-7", "0", 4}) // the memory it may have
	p.stop(t, syscall.SIGTERM)

	// The same where no cgroup is in sight, as in a container without the mount. The
	// handle of the group stays good.
	if err := unix.Unmount(cgroupRoot, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Mount("cgroup2", cgroupRoot, "cgroup2", 0, ""); err != nil {
			t.Error(err)
		}
	})
	p = launch(t, in(command(t)))
	p.is(t, cell{"4-7", "0", 4})
	p.stop(t, syscall.SIGTERM)
}
