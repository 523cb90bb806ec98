package testserver

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"
)

// Redis starts a Redis server that ends with the test. It has no password and keeps its
// data in memory only, so that a restart loses all of it.
func Redis(t testing.TB, args ...string) *Server {
	t.Helper()
	return launch(t, redis(), args)
}

func redis() *kind {
	return &kind{
		name:     "redis",
		packages: "redis-server",
		programs: []string{"redis-server"},
		ending:   syscall.SIGTERM,
		args: func(p *process) []string {
			return []string{
				"--bind", "127.0.0.1", "--port", p.port(), "--dir", p.dir,
				"--save", "", "--appendonly", "no", "--daemonize", "no",
			}
		},
		dsn:  func(addr, _ string) string { return "redis://" + addr + "/0" },
		ping: pingRedis,
	}
}

// pingRedis takes any answer for one: the server may want a password.
func pingRedis(ctx context.Context, addr string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is left to write
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprint(conn, "PING\r\n"); err != nil {
		return err
	}
	_, err = bufio.NewReader(conn).ReadString('\n')
	return err
}
