package machine

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	// Emulator is the program that is the machine; Debian's package of it is
	// qemu-system-x86.
	Emulator = "qemu-system-x86_64"
	// KernelEnv may name a kernel to boot instead of Debian's. What it needs must be
	// built in: the machine loads no modules.
	KernelEnv = "MACHINE_KERNEL"

	kernelPackage = "linux-image-cloud-amd64" // depends on the newest kernel's
)

// ErrMissing is wrapped by every error about something that must be installed first.
var ErrMissing = errors.New("not there")

// CheckEmulator says what to install if there is no emulator.
func CheckEmulator() error {
	if _, err := exec.LookPath(Emulator); err != nil {
		return fmt.Errorf("%s: %w; on Debian: apt-get install --no-install-recommends qemu-system-x86", Emulator, ErrMissing)
	}
	return nil
}

// Kernel returns the file of a kernel: the one that KernelEnv names, or the one in the
// user's cache directory, or else Debian's, which it fetches with apt-get into that
// directory. Nothing is installed, and root is not needed.
func Kernel(ctx context.Context) (string, error) {
	if file := os.Getenv(KernelEnv); file != "" {
		_, err := os.Stat(file)
		return file, err
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "pinion", "kernel")
	if cached, _ := filepath.Glob(filepath.Join(dir, "vmlinuz-*")); len(cached) > 0 {
		return cached[len(cached)-1], nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file, err := fetch(ctx, dir)
	if err != nil {
		return "", fmt.Errorf("kernel: %w: %w; where apt-get cannot fetch Debian's %s, set %s to the file of a kernel",
			ErrMissing, err, kernelPackage, KernelEnv)
	}
	return file, nil
}

// fetch downloads Debian's kernel, and keeps only its image in dir.
func fetch(ctx context.Context, dir string) (string, error) {
	scratch, err := os.MkdirTemp(dir, "fetch-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(scratch) }()

	name, err := newest(ctx, scratch)
	if err != nil {
		return "", err
	}
	if _, err := output(ctx, scratch, "apt-get", "download", name); err != nil {
		return "", err
	}
	packages, err := filepath.Glob(filepath.Join(scratch, "*.deb"))
	if err != nil || len(packages) != 1 {
		return "", fmt.Errorf("apt-get download %s: left %d packages", name, len(packages))
	}
	image, err := unpack(ctx, packages[0], scratch)
	if err != nil {
		return "", fmt.Errorf("unpack %s: %w", filepath.Base(packages[0]), err)
	}
	kept := filepath.Join(dir, filepath.Base(image))
	return kept, os.Rename(image, kept) // whole or not at all
}

// newest is the package of the newest kernel.
func newest(ctx context.Context, dir string) (string, error) {
	out, err := output(ctx, dir, "apt-cache", "depends", kernelPackage)
	if err != nil {
		return "", err
	}
	m := regexp.MustCompile(`Depends: (linux-image-[0-9]\S+)`).FindStringSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("apt-cache knows no %s: apt-get update", kernelPackage)
	}
	return m[1], nil
}

// unpack takes the kernel's image out of a package, and returns its file in dir.
func unpack(ctx context.Context, deb, dir string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	defer func() { cancel(); _ = cmd.Wait() }() // the rest, modules, is not wanted
	for archive := tar.NewReader(out); ; {
		h, err := archive.Next()
		if err != nil {
			return "", fmt.Errorf("find its /boot/vmlinuz-*: %w", err)
		}
		if found, _ := filepath.Match("boot/vmlinuz-*", filepath.Clean(h.Name)); !found {
			continue
		}
		file, err := os.Create(filepath.Join(dir, filepath.Base(h.Name)))
		if err != nil {
			return "", err
		}
		_, err = io.Copy(file, archive)
		return file.Name(), errors.Join(err, file.Close())
	}
}

// output runs a program and returns what it printed. Its error ends with the last
// line of what it complained about.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		complaints := strings.Split(strings.TrimSpace(string(exit.Stderr)), "\n")
		err = fmt.Errorf("%w: %s", err, complaints[len(complaints)-1])
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(out), nil
}
