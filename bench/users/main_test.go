package main

import (
	"strings"
	"testing"
)

// TestParse has mistakes that must show before any server is started.
func TestParse(t *testing.T) {
	o, err := parse(strings.Fields("-root ../.. -rounds 2"))
	if err != nil && !strings.Contains(err.Error(), "want some of") || o.rounds != 2 { // a host may have one CPU
		t.Errorf("got %+v, %v", o, err)
	}
	for args, want := range map[string]string{
		"extra -rounds 0":                  `unexpected argument "extra"`,
		"-rounds 0":                        "-rounds 0",
		"-users 5":                         "-users 5",
		"-root /nope":                      "-root: ",
		"-server-cpu 9999":                 "-server-cpu 9999",
		"-server-cpu 0 -other-cpus 0":      "-other-cpus 0",
		"-server-cpu x":                    "-server-cpu: ",
		"-other-cpus=":                     "-other-cpus",
		"-server-cpu 0 -other-cpus 1,9999": "-other-cpus 1,9999",
	} {
		if _, err := parse(strings.Fields("-root ../.. " + args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
}
