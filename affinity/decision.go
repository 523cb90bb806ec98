package affinity

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"

	"go.uber.org/automaxprocs/maxprocs"
)

// Decision says how many CPUs the Go scheduler gets, and why.
type Decision struct {
	CPUs       Set     // the mask; empty if it is not known
	Quota      float64 // tightest cgroup limit in CPUs, 1.5 is 150 ms in 100 ms; 0 = none
	QuotaFrom  string  // the file that holds it
	Share      float64 // of Quota that is for this process
	GOMAXPROCS int     // at least 1
	Reason     string  // what GOMAXPROCS follows from
}

// Decide works out GOMAXPROCS for a process on cpus without changing
// anything: one for each CPU, but no more than the cgroup quota rounded down,
// and never less than 1. Rounded down, because threads beyond the quota spend
// it early in each period and are then all stopped until the next. The quota
// is the tightest of the process's cgroup and its ancestors, version 1 and 2.
//
// share is the part of the quota that is for this process, where others of
// its cgroup have the rest ([Cell].Share), above 0 and up to 1. Anything else
// is taken as 1.
//
// A GOMAXPROCS environment variable is the operator's word and wins over the
// quota, up to the number of CPUs: more would only make threads wait for each
// other. One that is not a positive number is ignored, as the runtime does.
//
// root is the directory under which proc and the cgroup mounts are looked
// for, "/" on a live system. If cpus is empty, as where masks cannot be read,
// [runtime.NumCPU] is the number of CPUs.
//
// On an error, which names the limits that could not be understood, the
// Decision follows from the others and may be used.
func Decide(root string, cpus Set, share float64) (Decision, error) {
	q, err := tightestQuota(root)
	if err != nil {
		err = fmt.Errorf("CPU quota: %w", err)
	}
	d := Decision{CPUs: cpus, Quota: q.cpus, QuotaFrom: q.file, Share: share}
	d.decide(os.Getenv("GOMAXPROCS"))
	return d, err
}

// decide sets GOMAXPROCS and Reason from the rest of d.
func (d *Decision) decide(env string) {
	if !(d.Share > 0 && d.Share <= 1) { // nor NaN
		d.Share = 1
	}
	n := d.CPUs.Len()
	d.Reason = "one for each CPU of the mask"
	if n == 0 {
		n = runtime.NumCPU()
		d.Reason = "one for each CPU"
	}
	d.GOMAXPROCS = n
	if wish, err := strconv.Atoi(env); err == nil && wish > 0 {
		d.GOMAXPROCS = min(wish, n)
		d.Reason = fmt.Sprintf("GOMAXPROCS=%d in the environment", wish)
		if wish > n {
			d.Reason += fmt.Sprintf(", capped at %d CPUs", n)
		}
		return
	}
	quota := d.Quota * d.Share
	if quota > 0 && quota < float64(n) {
		// A third of 6 is 2, whatever the last bit of a float says. Quotas
		// are fractions of a period of at most 10^6 µs, so nothing that is
		// really less comes as near to a whole number.
		const rounding = 1e-10
		d.GOMAXPROCS = max(1, int(quota+rounding))
		d.Reason = fmt.Sprintf("cgroup quota %.4g CPUs at %s", d.Quota, d.QuotaFrom)
		if d.Share < 1 {
			d.Reason += fmt.Sprintf(", %.4g of them for this process", quota)
		}
	}
}

// Apply decides as [Decide] does for the live system and sets GOMAXPROCS, by
// way of automaxprocs, whose reading of the quota counts too if it is
// tighter. Setting it stops the world for a moment and ends the runtime's own
// updates from the cgroup, so a main function calls it once, after [Reexec]
// and before it serves.
//
// The Decision is in force also when there is an error, which then is worth a
// warning: a limit may have been missed.
func Apply(cpus Set, share float64) (Decision, error) {
	d, err := Decide("/", cpus, share)
	// automaxprocs calls back only where it found a quota, and leaves
	// GOMAXPROCS alone where it found none, fails (it does not know some
	// mounts), or sees the environment variable. Its error adds nothing: each
	// of its sources has been read by Decide, which has reported on them.
	_, _ = maxprocs.Set(maxprocs.RoundQuotaFunc(func(cpus float64) int {
		if cpus > 0 && (d.Quota == 0 || cpus < d.Quota) {
			d.Quota, d.QuotaFrom = cpus, "automaxprocs"
			d.decide("")
		}
		return d.GOMAXPROCS
	}))
	runtime.GOMAXPROCS(d.GOMAXPROCS)
	return d, err
}

// String returns the decision in one line, key=value:
//
//	cpus=0-7 gomaxprocs=1 reason="cgroup quota 1.5 CPUs at /sys/fs/cgroup/x/cpu.max"
func (d Decision) String() string {
	return fmt.Sprintf("cpus=%v gomaxprocs=%d reason=%q", d.CPUs, d.GOMAXPROCS, d.Reason)
}

// LogValue returns the same keys as a group for [log/slog].
func (d Decision) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("cpus", d.CPUs.String()),
		slog.Int("gomaxprocs", d.GOMAXPROCS),
		slog.String("reason", d.Reason),
	)
}
