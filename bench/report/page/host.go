package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// generators is the table of checks of the load generators.
func (r *report) generators(b *strings.Builder) {
	if len(r.run.Generator) == 0 {
		b.WriteString("Not checked in this run.\n\n")
		return
	}
	t := newTable("check", "wanted", "got", "verdict")
	wrong := 0
	for _, g := range r.run.Generator {
		found := "as wanted"
		if !g.OK {
			found = "**not as wanted**"
			wrong++
		}
		t.add(prose(g.Name), prose(g.Want), prose(g.Got), found)
	}
	if wrong > 0 {
		fmt.Fprintf(b, "**%d of %s failed: what the generator measured in this run is in doubt.**\n\n", wrong, plural(len(r.run.Generator), "check"))
	}
	t.write(b)
}

// host is the table that describes the machine.
func (r *report) host(b *strings.Builder) {
	h := r.run.Host
	t := newTable("", "")
	row := func(name, value string) {
		if value != "" {
			t.add(name, value)
		}
	}
	row("CPU", prose(h.CPU))
	if h.CPUs > 0 {
		row("CPUs online", fmt.Sprint(h.CPUs))
	}
	row("server on CPUs", prose(h.ServerCPUs))
	row("generators on CPUs", prose(h.LoadCPUs))
	if h.Memory > 0 {
		row("memory", bytesOf(float64(h.Memory)))
	}
	row("virtual machine", prose(or(h.Virtual, "no, as far as it shows")))
	row("kernel", prose(h.Kernel))
	row("frequency governor", prose(h.Governor))
	row("load average before", prose(h.Load))
	if h.Descriptors > 0 {
		row("open files allowed", thousands(fmt.Sprint(h.Descriptors)))
	}
	row("Go", prose(h.Go))
	for _, name := range slices.Sorted(maps.Keys(h.Tools)) {
		row(prose(name), prose(h.Tools[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(h.Sysctls)) {
		row(code(name), code(h.Sysctls[name]))
	}
	var unaffected []string
	for _, name := range slices.Sorted(maps.Keys(h.Mitigations)) {
		if h.Mitigations[name] == "Not affected" {
			unaffected = append(unaffected, name)
			continue
		}
		row(code(name), prose(h.Mitigations[name]))
	}
	row("not affected by", prose(strings.Join(unaffected, ", ")))
	t.write(b)
}

// peerTables say what each peer is, and how much it sends.
func (r *report) peerTables(b *strings.Builder) {
	t := newTable("peer", "version", "language", "how it is set up", "SHA-256 of the binary")
	var routes []string
	for _, name := range r.order {
		p := r.peer(name)
		if p.Version == "" && p.Setup == "" && p.SHA256 == "" {
			continue // one of a scenario, such as an engine with two loops
		}
		hash := code(p.SHA256[:min(12, len(p.SHA256))])
		t.add(peerName(name), or(prose(p.Version), none), or(prose(p.Language), none), or(prose(p.Setup), none), hash)
		routes = append(routes, slices.Collect(maps.Keys(p.Answers))...)
	}
	t.write(b)
	slices.Sort(routes)
	routes = slices.Compact(routes)
	if len(routes) == 0 {
		return
	}
	b.WriteString("Whole answers, head and body, in bytes:\n\n")
	head := []string{"peer"}
	for _, route := range routes {
		head = append(head, ">"+code(route))
	}
	t = newTable(head...)
	for _, name := range r.order {
		p := r.peer(name)
		if len(p.Answers) == 0 {
			continue
		}
		row := []string{peerName(name)}
		for _, route := range routes {
			cell := none
			if n, ok := p.Answers[route]; ok {
				cell = count(int64(n))
			}
			row = append(row, cell)
		}
		t.add(row...)
	}
	t.write(b)
}
