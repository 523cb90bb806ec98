package measure

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"pinion/affinity"
	"pinion/bench/record"
)

// Describe describes the host as far as it bears on figures. What cannot be read is said
// to be unknown.
func Describe(ctx context.Context, cpus CPUs) record.Host {
	cpuinfo := read("/proc/cpuinfo")
	h := record.Host{
		CPU:         first(cpuinfo, `(?m)^model name\s*:\s*(.*)$`),
		CPUs:        runtime.NumCPU(),
		Virtual:     hypervisor(cpuinfo),
		Kernel:      read("/proc/sys/kernel/osrelease"),
		Governor:    read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
		Go:          runtime.Version() + " " + runtime.GOARCH,
		Load:        strings.Join(strings.Fields(read("/proc/loadavg"))[:1], ""),
		Mitigations: map[string]string{},
		Sysctls:     map[string]string{},
		Tools:       map[string]string{},
		ServerCPUs:  cpus.Server.String(),
		LoadCPUs:    cpus.Load.String(),
	}
	if online, err := affinity.Online("/"); err == nil {
		h.CPUs = online.Len() // also those this process may not use
	}
	if kib, err := strconv.ParseInt(first(read("/proc/meminfo"), `MemTotal:\s+(\d+) kB`), 10, 64); err == nil {
		h.Memory = kib << 10
	}
	if n, err := Descriptors(); err == nil {
		h.Descriptors = uint64(n)
	}
	if h.Governor == unknown {
		h.Governor = "none (no cpufreq)"
	}
	files, _ := filepath.Glob("/sys/devices/system/cpu/vulnerabilities/*") // none: nothing to say
	for _, f := range files {
		if text := read(f); text != "Not affected" {
			h.Mitigations[filepath.Base(f)] = text
		}
	}
	for _, name := range []string{
		"net.core.somaxconn", "net.core.busy_poll", "net.core.busy_read", "net.core.netdev_max_backlog",
		"net.ipv4.ip_local_port_range", "net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_max_syn_backlog",
		"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_congestion_control",
		"kernel.sched_autogroup_enabled", "kernel.numa_balancing", "kernel.timer_migration",
	} {
		if text := read("/proc/sys/" + strings.ReplaceAll(name, ".", "/")); text != unknown {
			h.Sysctls[name] = strings.Join(strings.Fields(text), " ")
		}
	}
	for name, args := range map[string][]string{"wrk": {"-v"}, "gcc": {"--version"}} {
		out, _ := exec.CommandContext(ctx, name, args...).CombinedOutput() // wrk -v exits with 1
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		h.Tools[name] = strings.TrimSpace(strings.TrimSuffix(line, " Copyright (C) 2012 Will Glozer"))
	}
	return h
}

// unknown stands for what the host does not tell.
const unknown = "unknown"

func read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return unknown
	}
	return strings.TrimSpace(string(text))
}

func first(text, pattern string) string {
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		return unknown
	}
	return m[1]
}

// hypervisor names what the host runs on, or is empty on bare metal.
func hypervisor(cpuinfo string) string {
	if !strings.Contains(cpuinfo, " hypervisor") {
		return ""
	}
	if vendor := read("/sys/class/dmi/id/sys_vendor"); vendor != unknown && vendor != "" {
		return vendor
	}
	return "a hypervisor"
}
