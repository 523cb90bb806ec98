package config

import (
	"math"
	"math/big"
	"strings"
	"testing"
)

func TestSize(t *testing.T) {
	for s, want := range map[string]Size{
		"0": 0, "1": 1, "007": 7, "5B": 5, "1KiB": 1024, "1kb": 1000, "256MiB": 256 << 20, "64mb": 64e6, "1GiB": 1 << 30,
		"2GB": 2e9, "3TiB": 3 << 40, "3TB": 3e12, "9223372036854775807": math.MaxInt64, "8388607TiB": 8388607 << 40,
	} {
		got, err := ParseSize(s)
		if err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", s, got, err, want)
		}
		if again, err := ParseSize(got.String()); err != nil || again != got {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", got.String(), again, err, got)
		}
	}
	for size, want := range map[Size]string{
		0: "0", 1: "1", 1023: "1023", 1024: "1KiB", 1025: "1025", 256 << 20: "256MiB", 1536 << 10: "1536KiB", 1 << 40: "1TiB",
	} {
		if got := size.String(); got != want {
			t.Errorf("Size(%d).String() = %q, want %q", int64(size), got, want)
		}
	}
}

func TestSizeRefuses(t *testing.T) {
	for _, s := range []string{
		"", "B", "MiB", "-1", "+1", "1.5GiB", "1 MiB", " 1", "1M", "1K", "1KiBB", "1iB", "0x10", "1_000", "1e3", "١MiB",
	} {
		if got, err := ParseSize(s); err == nil || !strings.Contains(err.Error(), "want a size") {
			t.Errorf("ParseSize(%q) = %d, %v", s, got, err)
		}
	}
	for _, s := range []string{"9223372036854775808", "8388608TiB", "9999999999999999999999B", "9223372036854775807KB"} {
		if got, err := ParseSize(s); err == nil || !strings.Contains(err.Error(), "more than 64 bits") {
			t.Errorf("ParseSize(%q) = %d, %v", s, got, err)
		}
	}
}

// FuzzSize checks the number against math/big, and the way back.
func FuzzSize(f *testing.F) {
	for _, s := range []string{"0", "1", "256MiB", "64mb", "1.5GiB", "9223372036854775807", "8388608TiB", "-1", "1M", "B", "00012TB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseSize(s)
		if err != nil {
			return
		}
		digits := strings.TrimRight(s, "BKMGTibkmgt")
		want, ok := new(big.Int).SetString(digits, 10)
		if !ok || got < 0 {
			t.Fatalf("ParseSize(%q) = %d", s, got)
		}
		factor := map[string]int64{
			"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
		}[strings.ToLower(s[len(digits):])]
		if want.Mul(want, big.NewInt(factor)); want.Cmp(big.NewInt(int64(got))) != 0 {
			t.Errorf("ParseSize(%q) = %d, want %v", s, got, want)
		}
		if again, err := ParseSize(got.String()); err != nil || again != got {
			t.Errorf("%q became %q, which is %d, %v", s, got, again, err)
		}
	})
}
