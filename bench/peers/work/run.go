package work

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Timeouts of all peers that have such. They are what pinion itself has.
const (
	ReadTimeout  = 10 * time.Second
	WriteTimeout = 10 * time.Second
	IdleTimeout  = time.Minute
	// StopTimeout bounds what a peer does after SIGTERM.
	StopTimeout = 5 * time.Second
)

// Nap is how long /sleep sleeps.
const Nap = time.Millisecond

// OK is the body of /api/ping and of /sleep.
const OK = `{"status":"ok"}`

// Config is what a peer is started with.
type Config struct {
	Addr  string // 127.0.0.1:PORT
	Users *Store
}

var errNoUsers = errors.New("-users FILE is missing")

// Run reads the command line, adding -addr and -users to the flags the caller has defined,
// and calls serve with a context that ends with SIGTERM or SIGINT. It returns the exit
// status: 0 when serve returns nil, which it must after the context has ended.
func Run(serve func(context.Context, Config) error) int {
	addr := flag.String("addr", "127.0.0.1:8080", "where to serve")
	users := flag.String("users", "", `file with {"users":[…]}, as pinion answers`)
	flag.Parse()
	ctx, restore := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer restore()
	if err := run(ctx, *addr, *users, serve); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func run(ctx context.Context, addr, users string, serve func(context.Context, Config) error) error {
	if users == "" {
		return errNoUsers
	}
	store, err := Load(users)
	if err != nil {
		return err
	}
	return serve(ctx, Config{Addr: addr, Users: store})
}
