package testserver

import "fmt"

// Local is a server outside of tests, for trying things out and for measurements. It
// ends with the process at the latest.
type Local struct{ process *process }

// StartMariaDB starts MariaDB with an empty database. The caller must Close it.
func StartMariaDB(args ...string) (*Local, error) { return startLocal(mariaDB(), args) }

// StartRedis starts an empty Redis. The caller must Close it.
func StartRedis(args ...string) (*Local, error) { return startLocal(redis(), args) }

func startLocal(k *kind, args []string) (*Local, error) {
	binaries, missing := k.find()
	if missing != "" {
		return nil, fmt.Errorf("there is no %s: install the package %s", missing, k.packages)
	}
	p, err := newProcess(k, binaries, args)
	if err != nil {
		return nil, err
	}
	return &Local{process: p}, nil
}

// Addr is the address of the server, "127.0.0.1:port".
func (l *Local) Addr() string { return l.process.addr }

// DSN names the server as the flags of pinion do.
func (l *Local) DSN() string { return l.process.kind.dsn(l.process.addr, User) }

// Close ends the server and removes its data.
func (l *Local) Close() { l.process.remove() }
