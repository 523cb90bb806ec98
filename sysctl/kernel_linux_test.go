package sysctl

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// procFile is where the kernel keeps a key.
func procFile(key string) string {
	return "/proc/sys/" + strings.ReplaceAll(key, ".", "/")
}

// The machine's keys are looked at, never written. Some depend on how a
// kernel is built, and in a container most are hidden.
func TestBareMetalKeysHere(t *testing.T) {
	for key, s := range profile(t, "bare-metal.conf") {
		value, err := os.ReadFile(procFile(key))
		if errors.Is(err, fs.ErrNotExist) {
			t.Logf("%s is not on this kernel, or not in this namespace", key)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		t.Logf("%s is %s, profile %s", key, strings.Join(strings.Fields(string(value)), " "), s.value)
	}
}

func TestContainerKeysExist(t *testing.T) {
	for key := range profile(t, "container.conf") {
		switch _, err := os.ReadFile(procFile(key)); {
		case errors.Is(err, fs.ErrNotExist):
			t.Logf("%s: not a key of this kernel", key) // the comments tell since when it is one
		case err != nil:
			t.Errorf("%s: %v", key, err)
		}
	}
}

// TestContainerKeysInANamespace applies the profile in a new network
// namespace: each key must be there, begin with the default the comment
// gives, and take the value, and the value must not reach the outside.
func TestContainerKeysInANamespace(t *testing.T) {
	settings := profile(t, "container.conf")
	read := func(key string) string {
		value, err := os.ReadFile(procFile(key))
		if err != nil {
			t.Errorf("%s: %v", key, err)
		}
		return strings.Join(strings.Fields(string(value)), " ")
	}
	outside := map[string]string{}
	for key := range settings {
		if _, err := os.Stat(procFile(key)); errors.Is(err, fs.ErrNotExist) {
			delete(settings, key) // TestContainerKeysExist tells
			continue
		}
		outside[key] = read(key)
	}
	if len(settings) == 0 {
		t.Fatal("this kernel has none of the keys")
	}

	unshared := make(chan error)
	go func() {
		// Never unlocked: the thread ends with the goroutine, and the
		// namespace with the thread.
		runtime.LockOSThread()
		err := syscall.Unshare(syscall.CLONE_NEWNET)
		if err == nil {
			for key, s := range settings {
				if want, _, _ := strings.Cut(s.fields["default"], " ("); read(key) != want {
					t.Errorf("%s begins as %q, the comment says %q", key, read(key), want)
				}
				if err := os.WriteFile(procFile(key), []byte(s.value), 0); err != nil {
					t.Errorf("%s = %s: %v", key, s.value, err)
				}
				if got := read(key); got != s.value {
					t.Errorf("%s is %q after setting %q", key, got, s.value)
				}
			}
		}
		unshared <- err
	}()
	if err := <-unshared; err != nil && os.Getenv("CI") != "" {
		t.Fatalf("no network namespace in CI, where it must not be left out: %v", err)
	} else if err != nil {
		t.Skipf("a network namespace of its own needs CAP_SYS_ADMIN: %v", err)
	}
	for key, value := range outside {
		if now := read(key); now != value {
			t.Errorf("%s is the machine's: it went from %q to %q outside the namespace", key, value, now)
		}
	}
}
