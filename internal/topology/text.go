package topology

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"pinion/affinity"
)

// WriteText writes the report as tables of some 80 columns, more only where a
// machine has many nodes or a path is long. The text is for people and may
// change; programs read [Report.WriteJSON].
func (r *Report) WriteText(w io.Writer) error {
	var b bytes.Buffer
	r.writeMachine(&b)
	r.writeNodes(&b)
	r.writePlan(&b)
	if len(r.Topology.Notes)+len(r.unread()) > 0 {
		b.WriteByte('\n')
	}
	for _, note := range r.Topology.Notes {
		hang(&b, "note: ", note)
	}
	for _, wrong := range r.unread() {
		hang(&b, "error: ", wrong)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (r *Report) writeMachine(b *bytes.Buffer) {
	t := &r.Topology
	hang(b, "CPUs    ", fmt.Sprintf("online %s; possible %s; this process may use %s",
		listOr(t.Online, "unknown"), listOr(t.Possible, "unknown"), listOr(r.Allowed, "unknown")))
	hang(b, "cores   ", groups(t.Cores))
	hang(b, "L3      ", groups(t.L3))
	hang(b, "cgroup  ", fmt.Sprintf("cpuset %s; memory nodes %s",
		listOr(t.CPUSet, "unknown"), listOr(t.MemSet, "unknown")))
	quota := "none"
	if t.Quota > 0 {
		quota = fmt.Sprintf("%.4g CPUs, from %s", t.Quota, t.QuotaFrom)
	}
	hang(b, "quota   ", quota)
	b.WriteByte('\n')
}

func (r *Report) writeNodes(b *bytes.Buffer) {
	if len(r.Topology.Nodes) == 0 {
		return
	}
	to := "distance to"
	for _, n := range r.Topology.Nodes {
		to += fmt.Sprintf(" %3d", n.ID)
	}
	rows := table{{"node", "CPUs", "memory", to}}
	for _, n := range r.Topology.Nodes {
		distances := strings.Repeat(" ", len("distance to"))
		for _, d := range n.Distances {
			distances += fmt.Sprintf(" %3d", d.Distance)
		}
		rows = append(rows, []string{strconv.Itoa(n.ID), listOr(n.CPUs, "none"), size(n.MemoryBytes), distances})
	}
	rows.write(b, nil)
	b.WriteByte('\n')
}

func (r *Report) writePlan(b *bytes.Buffer) {
	flags := fmt.Sprintf("-cpus %s -cells %s: ", r.CPUs, r.Cells)
	if r.PlanErr != nil {
		hang(b, "", flags+"not possible: "+r.PlanErr.Error())
		return
	}
	hang(b, "", flags+count(len(r.Plan), "cell"))
	rows := table{{"cell", "CPUs", "loops", "GOMAXPROCS", "memory", "quota (CPUs)"}}
	var reasons []string
	for _, c := range r.Plan {
		memory, quota := "any node", "none"
		if !c.Memory.Empty() {
			memory = "node " + c.Memory.String()
		}
		if r.Topology.Quota > 0 {
			quota = fmt.Sprintf("%.4g", c.Share*r.Topology.Quota)
		}
		rows = append(rows, []string{
			strconv.Itoa(c.Index), c.CPUs.String(),
			strconv.Itoa(c.GOMAXPROCS), strconv.Itoa(c.GOMAXPROCS), memory, quota,
		})
		reasons = append(reasons, c.Reason)
	}
	rows.write(b, reasons)
}

// groups says how many sets there are, of how many CPUs, and which.
func groups(sets []affinity.Set) string {
	if len(sets) == 0 {
		return "none known"
	}
	small, large := sets[0].Len(), sets[0].Len()
	var lists []string
	for _, s := range sets {
		small, large = min(small, s.Len()), max(large, s.Len())
		lists = append(lists, s.String())
	}
	of := count(small, "CPU")
	if large > small {
		of = fmt.Sprintf("%d to %s", small, count(large, "CPU"))
	}
	text := fmt.Sprintf("%d of %s", len(sets), of)
	if large == 1 {
		return text // each CPU is its own
	}
	return text + ": " + strings.Join(lists, "  ")
}

func listOr(s affinity.Set, none string) string {
	if s.Empty() {
		return none
	}
	return s.String()
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func size(bytes uint64) string {
	switch {
	case bytes == 0:
		return "none"
	case bytes < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}
