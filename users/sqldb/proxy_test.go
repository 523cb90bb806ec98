package sqldb

import (
	"bytes"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"

	"pinion/internal/testserver"
)

// commitSent says that a COMMIT went through the proxy since a test has cleared it.
var commitSent atomic.Bool

// loseCommit is a toxic that cuts the connection when a COMMIT comes, which the server
// then does not get. With Forward set the server gets it. At is something else to cut at.
type loseCommit struct {
	Forward bool   `json:"forward"`
	At      string `json:"at"`
}

// Pipe implements toxics.Toxic.
func (l *loseCommit) Pipe(stub *toxics.ToxicStub) {
	pipe(stub, func(data []byte) bool {
		if l.At != "" {
			return !bytes.Contains(data, []byte(l.At))
		}
		if !bytes.Contains(data, []byte("\x03COMMIT")) && !bytes.Contains(data, []byte("COMMIT\x00")) {
			return true
		}
		commitSent.Store(true)
		return l.Forward
	})
}

// loseAnswer is a toxic that cuts the connection when the answer to a COMMIT comes, or,
// with Silent set, keeps the connection and the answer.
type loseAnswer struct {
	Silent bool `json:"silent"`
}

// Pipe implements toxics.Toxic.
func (l *loseAnswer) Pipe(stub *toxics.ToxicStub) {
	pipe(stub, func([]byte) bool {
		if !commitSent.Load() {
			return true
		}
		if l.Silent {
			<-stub.Interrupt // the test is over
		}
		return false
	})
}

// pipe forwards what pass lets through, and cuts the connection at what it does not.
func pipe(stub *toxics.ToxicStub, pass func([]byte) bool) {
	for {
		select {
		case <-stub.Interrupt:
			return
		case c := <-stub.Input:
			if c != nil && pass(c.Data) {
				stub.Output <- &stream.StreamChunk{Data: c.Data, Timestamp: c.Timestamp}
				continue
			}
			stub.Close()
			for c != nil { // whoever writes must not hang
				c = <-stub.Input
			}
			return
		}
	}
}

// proxied returns the DSN of a database as it is seen through a proxy.
func proxied(t *testing.T, server *testserver.Server, dsn string) (string, *toxiproxy.Proxy) {
	t.Helper()
	toxics.Register("lose_commit", new(loseCommit))
	toxics.Register("lose_answer", new(loseAnswer))
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	proxy := toxiproxy.NewProxy(api, t.Name(), "127.0.0.1:0", server.Addr())
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Stop)
	return strings.Replace(dsn, server.Addr(), proxy.Listen, 1), proxy
}

func addToxic(t *testing.T, proxy *toxiproxy.Proxy, text string) {
	t.Helper()
	if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
}
