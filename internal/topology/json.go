package topology

import (
	"encoding/json"
	"fmt"
	"io"

	"pinion/affinity"
)

// The keys are an interface: programs read them. New ones may be added.
type (
	document struct {
		CPUs   cpusJSON       `json:"cpus"`
		Nodes  []nodeJSON     `json:"nodes"`
		Cores  []affinity.Set `json:"cores"`
		L3     []affinity.Set `json:"l3"`
		CGroup cgroupJSON     `json:"cgroup"`
		Plan   planJSON       `json:"plan"`
		Notes  []string       `json:"notes"`
		Errors []string       `json:"errors"`
	}
	cpusJSON struct {
		Possible affinity.Set `json:"possible"`
		Online   affinity.Set `json:"online"`
		Allowed  affinity.Set `json:"allowed"`
	}
	nodeJSON struct {
		ID          int            `json:"id"`
		CPUs        affinity.Set   `json:"cpus"`
		MemoryBytes uint64         `json:"memory_bytes"`
		Distances   []distanceJSON `json:"distances"`
	}
	distanceJSON struct {
		Node     int `json:"node"`
		Distance int `json:"distance"`
	}
	cgroupJSON struct {
		CPUSet    affinity.Set `json:"cpuset"`
		Mems      affinity.Set `json:"mems"`
		QuotaCPUs float64      `json:"quota_cpus"`
		QuotaFrom string       `json:"quota_from"`
	}
	planJSON struct {
		CPUs  string     `json:"cpus_flag"`
		Mode  string     `json:"cells_flag"`
		Cells []cellJSON `json:"cells"`
		Error string     `json:"error"`
	}
	cellJSON struct {
		Index      int          `json:"index"`
		CPUs       affinity.Set `json:"cpus"`
		Nodes      affinity.Set `json:"nodes"`
		Memory     affinity.Set `json:"memory_nodes"`
		Loops      int          `json:"loops"`
		GOMAXPROCS int          `json:"gomaxprocs"`
		Share      float64      `json:"quota_share"`
		Reason     string       `json:"reason"`
	}
)

// WriteJSON writes the report as one JSON object and a newline. Every key is
// there always: CPUs and nodes are strings in the kernel's list format, "" where
// there are none or none is known; lists are never null; quota_cpus is 0
// without a limit; plan.error is "" where there is a plan.
func (r *Report) WriteJSON(w io.Writer) error {
	t := &r.Topology
	d := document{
		CPUs:  cpusJSON{t.Possible, t.Online, r.Allowed},
		Nodes: []nodeJSON{},
		// append, because a nil slice would be null.
		Cores:  append([]affinity.Set{}, t.Cores...),
		L3:     append([]affinity.Set{}, t.L3...),
		CGroup: cgroupJSON{t.CPUSet, t.MemSet, t.Quota, t.QuotaFrom},
		Plan:   planJSON{CPUs: r.CPUs, Mode: r.Cells, Cells: []cellJSON{}},
		Notes:  append([]string{}, t.Notes...),
		Errors: append([]string{}, r.unread()...),
	}
	for _, n := range t.Nodes {
		distances := make([]distanceJSON, 0, len(n.Distances))
		for _, to := range n.Distances {
			distances = append(distances, distanceJSON(to))
		}
		d.Nodes = append(d.Nodes, nodeJSON{n.ID, n.CPUs, n.MemoryBytes, distances})
	}
	for _, c := range r.Plan {
		d.Plan.Cells = append(d.Plan.Cells, cellJSON{
			Index: c.Index, CPUs: c.CPUs, Nodes: c.Nodes, Memory: c.Memory,
			Loops: c.GOMAXPROCS, GOMAXPROCS: c.GOMAXPROCS, Share: c.Share, Reason: c.Reason,
		})
	}
	if r.PlanErr != nil {
		d.Plan.Error = r.PlanErr.Error()
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the topology: %w", err)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
