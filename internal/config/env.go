package config

import (
	"fmt"
	"slices"
	"strings"
)

const (
	envPrefix = "PINION_"
	// reexecEnv is what affinity.Reexec leaves for the program it starts, cellEnv
	// what cell.Supervisor does.
	reexecEnv = "PINION_AFFINITY"
	cellEnv   = "PINION_CELL"
)

// readEnv finds the variables of settings, in the order of settings, and warns of
// those that start like one and are none.
func readEnv(environ []string, settings []*setting) (all []given, warnings []string) {
	values := make(map[string]string)
	for _, e := range environ {
		name, text, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, envPrefix) {
			continue
		}
		if _, ok := values[name]; !ok { // as os.Getenv: of repeated ones the first counts
			values[name] = text
		}
	}
	for _, s := range settings {
		if text, ok := values[s.env()]; ok {
			all = append(all, given{name: s.name, source: s.env(), text: text})
			delete(values, s.env())
		}
	}
	delete(values, reexecEnv)
	delete(values, cellEnv)
	for name := range values {
		if !fromKubernetes(strings.TrimPrefix(name, envPrefix)) {
			warnings = append(warnings, fmt.Sprintf("%s is set in the environment, but there is no such flag", OneLine(name)))
		}
	}
	slices.Sort(warnings)
	return all, warnings
}

// Environ returns environ with a variable for every flag in place of those it had, so
// that Parse without arguments gives what c is, whatever has become of the file since.
func (c *Config) Environ(environ []string) []string {
	settings := c.settings()
	all := slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.ContainsFunc(settings, func(s *setting) bool { return s.env() == name })
	})
	for _, s := range settings {
		if !s.noFile {
			all = append(all, s.env()+"="+s.value.String())
		}
	}
	return all
}

// fromKubernetes reports whether Kubernetes gives every container in the namespace a
// variable that ends in name because there is a service called pinion or pinion-…:
// SERVICE_HOST, SERVICE_PORT, SERVICE_PORT_HTTP, PORT, PORT_80_TCP, PORT_80_TCP_ADDR,
// each with the rest of the service's name before it. See
// https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
func fromKubernetes(name string) bool {
	name = "_" + name
	for _, end := range []string{"_SERVICE_HOST", "_SERVICE_PORT", "_PORT"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	if strings.Contains(name, "_SERVICE_PORT_") {
		return true
	}
	// PORT, a number, a protocol, and maybe one word more.
	words := strings.Split(name, "_")
	n := len(words)
	if slices.Contains([]string{"PROTO", "PORT", "ADDR"}, words[n-1]) {
		n--
	}
	return n >= 3 && words[n-3] == "PORT" &&
		words[n-2] != "" && strings.Trim(words[n-2], "0123456789") == "" &&
		slices.Contains([]string{"TCP", "UDP", "SCTP"}, words[n-1])
}
