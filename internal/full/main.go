// Command full runs pinion as it is run in earnest: on MariaDB, Redis and a member
// service, which it starts on this machine with nothing in them, and ends with it.
//
//	go run ./internal/full ./server -cpus 0
//
// The arguments are pinion's program and further flags for it. The data is gone
// afterwards.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"pinion/internal/testserver"
	"pinion/users"
	"pinion/users/members/service"
	"pinion/users/sqldb"
)

// people is how many users there are.
const people = 100_000

func main() {
	if err := run(os.Args[1:]); err != nil {
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			os.Exit(max(ended.ExitCode(), 1))
		}
		fmt.Fprintln(os.Stderr, "full:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("want the program to run and its flags")
	}
	stop, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer restore()
	db, err := testserver.StartMariaDB()
	if err != nil {
		return err
	}
	defer db.Close()
	redis, err := testserver.StartRedis()
	if err != nil {
		return err
	}
	defer redis.Close()
	members, addr, err := serveMembers()
	if err != nil {
		return err
	}
	defer members.Shutdown(stop) //nolint:errcheck // nobody waits for its answers

	args = append(args, "-db", db.DSN(), "-redis", redis.DSN(), "-members", "http://"+addr, "-demo", fmt.Sprint(people))
	fmt.Fprintf(os.Stderr, "-db %s -redis %s -members http://%s\n", db.DSN(), redis.DSN(), addr)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	// In a group of its own, so that Ctrl-C reaches it once, from here.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer context.AfterFunc(stop, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })()
	return cmd.Wait()
}

// serveMembers answers for the made-up users.
func serveMembers() (*service.Server, string, error) {
	known := make(map[int64]users.Member)
	for u := range sqldb.DemoUsers(people) {
		if u.Member != nil {
			known[u.ID] = *u.Member
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	s := service.New(func(id int64) (users.Member, bool) {
		m, ok := known[id]
		return m, ok
	})
	go s.Serve(ln) //nolint:errcheck // it serves until the end
	return s, ln.Addr().String(), nil
}
