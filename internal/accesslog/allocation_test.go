//go:build !race

package accesslog

import (
	"context"
	"io"
	"net"
	"testing"
)

func TestNoAllocs(t *testing.T) {
	mode, err := ParseMode("1/3")
	if err != nil {
		t.Fatal(err)
	}
	l := New(Config{Mode: mode, Out: io.Discard, Lines: 64})
	defer func() { _ = l.Close(context.Background()) }()

	tcp, unix := entry(), entry()
	unix.Remote = &net.UnixAddr{Name: "@", Net: "unix"}
	v6 := entry()
	v6.Remote = &net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 65535}
	for name, f := range map[string]func(){
		"Wants":             func() { l.Wants(1, 200) },
		"Record, IPv4":      func() { l.Record(1, tcp) },
		"Record, IPv6":      func() { l.Record(1, v6) },
		"Record, Unix":      func() { l.Record(1, unix) },
		"Record, ring full": func() { l.Record(1, tcp) },
	} {
		// The writer's allocations count too. Many rounds: every slot is used again and again.
		if n := testing.AllocsPerRun(2000, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
