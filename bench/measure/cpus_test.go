package measure

import (
	"strings"
	"testing"

	"pinion/affinity"
)

func TestCPUs(t *testing.T) {
	set := func(list string) affinity.Set {
		s, err := affinity.ParseSet(list)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct{ all, server, load, want string }{
		{"0-1", "", "", "0 1"},
		{"4-9", "", "", "4 5-9"},
		{"4-9", "6-7", "", "6-7 4-5,8-9"},
		{"4-9", "", "4", "5 4"},
		{"4-9", "8", "5", "8 5"},
	} {
		got, err := CPUs{All: set(c.all), Server: set(c.server), Load: set(c.load)}.fill()
		if err != nil || got.Server.String()+" "+got.Load.String() != c.want {
			t.Errorf("%+v: %v and %v, %v", c, got.Server, got.Load, err)
		}
	}
	for _, c := range []struct{ all, server, load, want string }{
		{"3", "", "", "want at least two"},
		{"0-1", "", "0-1", "want at least two"},
		{"0-3", "0-1", "1-2", "in common"},
		{"0-3", "4", "", "only 0-3 may be used"},
		{"0-3", "0", "7", "only 0-3 may be used"},
	} {
		if got, err := (CPUs{All: set(c.all), Server: set(c.server), Load: set(c.load)}).fill(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v and %v, %v", c, got.Server, got.Load, err)
		}
	}
	if _, err := ChooseCPUs("x", ""); err == nil || !strings.HasPrefix(err.Error(), "-server-cpus: ") {
		t.Errorf("got %v", err)
	}
	if _, err := ChooseCPUs("", "1-0"); err == nil || !strings.HasPrefix(err.Error(), "-load-cpus: ") {
		t.Errorf("got %v", err)
	}
}
