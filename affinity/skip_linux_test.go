package affinity

import (
	"os"
	"testing"
)

// skip leaves a test out where the host cannot run it. In CI, which can, that is
// a failure: a test left out there would never be missed.
func skip(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
