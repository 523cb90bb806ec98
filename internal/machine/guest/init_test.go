//go:build linux && numa

package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain is the machine's init when it is process 1, and runs the tests in a
// child of that: init must wait for whatever process is left behind, and would
// take the exit status of a test's process from under the test's hands.
func TestMain(m *testing.M) {
	if os.Getpid() != 1 {
		// Idle Ps spin for a while, and eight emulated CPUs that spin leave little
		// of the host's to the server.
		runtime.GOMAXPROCS(1)
		os.Exit(m.Run())
	}
	status, err := boot()
	if err != nil {
		fmt.Println("guest: init:", err)
		status = 1
	}
	// The host takes no other line for a machine that ran to its end.
	fmt.Printf("guest: tests ended with status %d\n", status)
	unix.Sync()
	err = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	fmt.Println("guest: power off:", err)
	select {} // process 1 must not end
}

// boot readies the machine, runs this binary's tests as a process of their own,
// and reaps every process until that one has ended. It returns its exit status.
func boot() (int, error) {
	if err := mountAll(); err != nil {
		return 0, err
	}
	if err := loopbackUp(); err != nil {
		return 0, err
	}
	tests := exec.Command("/proc/self/exe", os.Args[1:]...)
	tests.Args[0] = os.Args[0]
	tests.Env = []string{"PATH=/bin", "HOME=/tmp", "TMPDIR=/tmp"}
	tests.Dir = "/tmp"
	tests.Stdout, tests.Stderr = os.Stdout, os.Stderr
	tests.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := tests.Start(); err != nil {
		return 0, err
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, os.NewSyscallError("wait4", err)
		case pid == tests.Process.Pid && status.Signaled():
			return 0, fmt.Errorf("the tests ended by %v", status.Signal())
		case pid == tests.Process.Pid:
			return status.ExitStatus(), nil
		}
	}
}

// cgroupRoot is where the machine has its cgroup v2 hierarchy.
const cgroupRoot = "/sys/fs/cgroup"

func mountAll() error {
	for _, m := range []struct{ kind, dir, options string }{
		{"devtmpfs", "/dev", ""},
		{"proc", "/proc", ""},
		{"sysfs", "/sys", ""},
		{"tmpfs", "/tmp", "mode=1777"},
		{"cgroup2", cgroupRoot, ""},
	} {
		if err := os.MkdirAll(m.dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.dir, m.kind, 0, m.options); err != nil && err != unix.EBUSY {
			return fmt.Errorf("mount %s: %w", m.dir, err)
		}
	}
	return os.WriteFile(filepath.Join(cgroupRoot, "cgroup.subtree_control"), []byte("+cpu +cpuset"), 0)
}

// loopbackUp brings the interface lo up; the kernel gives it its addresses.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return os.NewSyscallError("bring lo up", unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo))
}
