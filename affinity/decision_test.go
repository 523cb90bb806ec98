package affinity

import (
	"bytes"
	"log/slog"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
)

// unsetenv keeps the tester's own GOMAXPROCS out of the decision.
func unsetenv(t *testing.T) {
	t.Helper()
	t.Setenv("GOMAXPROCS", "") // restores it in the end
	if err := os.Unsetenv("GOMAXPROCS"); err != nil {
		t.Fatal(err)
	}
}

func TestDecideQuota(t *testing.T) {
	unsetenv(t)
	tests := []struct {
		tree  string
		cpus  string
		quota float64
		from  string
		procs int
	}{
		{"absent", "0-7", 0, "", 8},
		{"v2-unlimited", "0-7", 0, "", 8},
		{"v2", "0-7", 1.5, "/sys/fs/cgroup/system.slice/pinion.service/cpu.max", 1},
		{"v2", "5", 1.5, "/sys/fs/cgroup/system.slice/pinion.service/cpu.max", 1},
		{"v2-ancestor", "0-7", 2.5, "/sys/fs/cgroup/kubepods/pod1/cpu.max", 2},
		{"v2-ancestor", "0-1", 2.5, "/sys/fs/cgroup/kubepods/pod1/cpu.max", 2},
		{"v2-elsewhere", "0-7", 0.5, `/run/my cgroups/jobs/a\x2db/cpu.max`, 1},
		{"v2-partial", "0-7", 3, "/sys/fs/cgroup/cpu.max", 3},
		{"v2-outside", "0-7", 0, "", 8},
		{"v1", "0-7", 3.7, "/sys/fs/cgroup/cpu,cpuacct/batch/cpu.cfs_quota_us", 3},
		{"v1", "1024-1025", 3.7, "/sys/fs/cgroup/cpu,cpuacct/batch/cpu.cfs_quota_us", 2},
		{"hybrid", "0-7", 2, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", 2},
	}
	for _, tt := range tests {
		d, err := Decide("testdata/"+tt.tree, set(t, tt.cpus), 1)
		if err != nil {
			t.Errorf("%s: %v", tt.tree, err)
		}
		if d.Quota != tt.quota || d.QuotaFrom != tt.from || d.GOMAXPROCS != tt.procs || d.CPUs.String() != tt.cpus {
			t.Errorf("%s on CPUs %s: %+v, want quota %v from %q and GOMAXPROCS %d",
				tt.tree, tt.cpus, d, tt.quota, tt.from, tt.procs)
		}
		binds := strings.Contains(d.Reason, "cgroup quota")
		if want := tt.quota > 0 && tt.quota < float64(d.CPUs.Len()); binds != want {
			t.Errorf("%s on CPUs %s: reason %q", tt.tree, tt.cpus, d.Reason)
		}
	}
}

// A part of the quota is rounded down like the whole, but not below a whole
// number by the last bit of a float.
func TestDecideShare(t *testing.T) {
	unsetenv(t)
	for _, tt := range []struct {
		quota, share float64
		procs        int
	}{
		{6, 1. / 3, 2},
		{22, 15. / 22, 15}, // 14.999999999999998
		{2.5, 0.4, 1},
		{3, 2. / 3, 2},
		{7, 3. / 7, 3},
		{7, 0.5, 3},
		{3.999999, 1, 3},
		{1.5, 0.5, 1},
		{100, 0.0001, 1},
		{16, 0.5, 8},
		{80, 0.5, 32}, // more than there are CPUs
		{0, 0.5, 32},  // no quota
		{4, 0, 4},     // no share
		{4, -1, 4},
		{4, 2, 4},
		{4, math.NaN(), 4},
		{4, math.Inf(1), 4},
	} {
		d := Decision{CPUs: set(t, "0-31"), Quota: tt.quota, QuotaFrom: "cpu.max", Share: tt.share}
		d.decide("")
		if d.GOMAXPROCS != tt.procs {
			t.Errorf("%v of %v: GOMAXPROCS %d, want %d (%s)", tt.share, tt.quota, d.GOMAXPROCS, tt.procs, d.Reason)
		}
	}
	d, err := Decide("testdata/v2-ancestor", set(t, "0-7"), 0.8) // of 2.5
	if want := "cgroup quota 2.5 CPUs at /sys/fs/cgroup/kubepods/pod1/cpu.max, 2 of them for this process"; err != nil || d.GOMAXPROCS != 2 || d.Reason != want || d.Share != 0.8 {
		t.Errorf("%+v, %v, want GOMAXPROCS 2, %q", d, err, want)
	}
	t.Setenv("GOMAXPROCS", "5")
	if d, err := Decide("testdata/v2-ancestor", set(t, "0-7"), 0.5); err != nil || d.GOMAXPROCS != 5 {
		t.Errorf("%+v, %v, want the environment's 5", d, err)
	}
}

// What cannot be read is an error that names it; what can still counts.
func TestDecideMalformed(t *testing.T) {
	unsetenv(t)
	tests := []struct {
		tree  string
		names string
		quota float64
	}{
		{"bad-words", "/sys/fs/cgroup/a/b/cpu.max", 2},
		{"bad-zero-period", "/sys/fs/cgroup/a/b/cpu.max", 2},
		{"bad-negative", "/sys/fs/cgroup/a/b/cpu.max", 2},
		{"bad-short", "/sys/fs/cgroup/a/b/cpu.max", 2},
		{"bad-empty", "/sys/fs/cgroup/a/b/cpu.max", 2},
		{"bad-v1-period", "cpu.cfs_period_us", 0},
		{"bad-membership", "/proc/self/cgroup", 0},
		{"bad-mountinfo", "/proc/self/mountinfo", 0},
	}
	for _, tt := range tests {
		d, err := Decide("testdata/"+tt.tree, set(t, "0-7"), 1)
		if err == nil || !strings.Contains(err.Error(), tt.names) {
			t.Errorf("%s: error %v, want one that names %s", tt.tree, err, tt.names)
		}
		if d.Quota != tt.quota || d.GOMAXPROCS < 1 {
			t.Errorf("%s: %+v, want quota %v", tt.tree, d, tt.quota)
		}
	}
}

func TestDecideEnvironment(t *testing.T) {
	tests := []struct {
		env    string
		procs  int
		reason string
	}{
		{"1", 1, "GOMAXPROCS=1 in the environment"},
		{"3", 3, "GOMAXPROCS=3 in the environment"}, // over the quota
		{"99", 4, "GOMAXPROCS=99 in the environment, capped at 4 CPUs"},
		{"0", 1, "cgroup quota"},
		{"-2", 1, "cgroup quota"},
		{"two", 1, "cgroup quota"},
		{"", 1, "cgroup quota"},
	}
	for _, tt := range tests {
		t.Setenv("GOMAXPROCS", tt.env)
		d, err := Decide("testdata/v2", set(t, "0-3"), 1)
		if err != nil || d.GOMAXPROCS != tt.procs || !strings.HasPrefix(d.Reason, tt.reason) {
			t.Errorf("GOMAXPROCS=%q: %+v, %v, want %d, %q", tt.env, d, err, tt.procs, tt.reason)
		}
	}
}

func TestDecideUnknownMask(t *testing.T) {
	unsetenv(t)
	d, err := Decide("testdata/absent", Set{}, 1)
	if err != nil || d.GOMAXPROCS != runtime.NumCPU() {
		t.Errorf("%+v, %v, want GOMAXPROCS %d", d, err, runtime.NumCPU())
	}
}

func TestDecisionText(t *testing.T) {
	d := Decision{CPUs: set(t, "0-7"), Quota: 1.5, QuotaFrom: "/sys/fs/cgroup/x/cpu.max"}
	d.decide("")
	const want = `cpus=0-7 gomaxprocs=1 reason="cgroup quota 1.5 CPUs at /sys/fs/cgroup/x/cpu.max"`
	if got := d.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("affinity", "cpu", d)
	for _, part := range []string{"cpu.cpus=0-7 cpu.gomaxprocs=1", `cpu.reason="cgroup quota 1.5 CPUs`} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("log line %q lacks %q", out.String(), part)
		}
	}
}
