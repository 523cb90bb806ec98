package config

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"pinion/affinity"
	"pinion/internal/accesslog"
	"pinion/internal/listen"
)

// setting is one flag, and its environment variable and its key in the file.
type setting struct {
	group string
	name  string
	arg   string // what stands for the value in help
	help  string
	def   string // the default in words, if it is not the text of the value
	value value

	number bool // the file must have a YAML number
	noFile bool // not a key of the file
}

// value reads and shows one field of a Config.
type value interface {
	set(text string) error
	String() string
}

// env is the name of the environment variable.
func (s *setting) env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

func find(settings []*setting, name string) *setting {
	i := slices.IndexFunc(settings, func(s *setting) bool { return s.name == name })
	if i < 0 {
		return nil
	}
	return settings[i]
}

// Groups of settings in help, in this order.
const (
	groupServe  = "Serve"
	groupUsers  = "Users"
	groupLimits = "Limits"
	groupDrain  = "Drain"
	groupLog    = "Log"
)

const (
	maxDemo        = 10_000_000
	maxConns       = 10_000_000
	maxDBConns     = 10_000
	minHeaderBytes = 4 * KiB // fasthttp's least useful read buffer
	maxHeaderBytes = 1 * MiB // it is kept for each connection that is being served
	minL1Bytes     = 1 * MiB
	shortest       = time.Millisecond
	longest        = time.Hour
)

// settings are all flags, in the order of help, as views into c.
func (c *Config) settings() []*setting {
	return []*setting{
		{group: groupServe, name: "addr", arg: "ADDRESS", value: address{&c.Addr, false}, help: "where to serve: host:port or unix:/path"},
		{group: groupServe, name: "admin", arg: "ADDRESS", value: address{&c.Admin, true}, help: "private port for metrics, profiles and health; empty: none"},
		{group: groupServe, name: "cpus", arg: "LIST", value: cpus{&c.CPUs}, def: "all allowed", help: "run on these CPUs only, a list as the kernel writes it: 0-7 or 0-7,16-23 or 0-31:2/4"},
		{group: groupServe, name: "cells", arg: "HOW", value: cells{&c.Cells}, help: "processes: auto, one for each NUMA node that -cpus touches; off, one; or a number"},
		{group: groupServe, name: "steer", arg: "HOW", value: choice{&c.Steer, Steers()}, help: "who gets a new connection: auto, of several cells the one whose CPU took its first packet, or that is on the same NUMA node; cpu, the loop of that very CPU; off, any, by the kernel's hash"},
		{group: groupServe, name: "engine", arg: "NAME", value: choice{&c.Engine, Engines()}, help: "transport: " + strings.Join(Engines(), " or ")},
		{group: groupServe, name: "config", arg: "FILE", value: text{&c.File}, def: "none", noFile: true, help: "YAML file with the same names as these flags"},

		{group: groupUsers, name: "db", arg: "SOURCE", value: databaseSource(&c.DB), help: "sqlite:FILE; sqlite::memory: to keep nothing; mysql://USER:PASSWORD@HOST:PORT/NAME; or postgres://…"},
		{group: groupUsers, name: "db-conns", arg: "N", value: count{&c.DBConns, 0, maxDBConns}, number: true, def: "4 a CPU, from 8 to 64", help: "connections to the database, all cells together; 0: as many as by default"},
		{group: groupUsers, name: "redis", arg: "URL", value: redisSource(&c.Redis), def: "none", help: "redis://[USER:PASSWORD@]HOST:PORT[/DB]: the attributes, and a cache that instances share; empty: none"},
		{group: groupUsers, name: "members", arg: "URL", value: memberSource(&c.Members), def: "the table members", help: "http://HOST:PORT of the member service; empty: the table members"},
		{group: groupUsers, name: "demo", arg: "N", value: count{&c.Demo, 0, maxDemo}, number: true, help: "fill an empty database with N made-up users, and accept the token token123 for writes"},
		{group: groupUsers, name: "tokens", arg: "FILE", value: text{&c.Tokens}, def: "none", help: "bearer tokens that may write, one a line, name:sha256hex; without it and -demo nobody may"},
		{group: groupUsers, name: "l1-bytes", arg: "SIZE", value: size{&c.L1Bytes, minL1Bytes, 1 << 62}, help: "cap of the in-process cache of users, at least 1MiB"},

		{group: groupLimits, name: "read-timeout", arg: "TIME", value: duration{&c.ReadTimeout, shortest, longest}, help: "for a whole request to arrive"},
		{group: groupLimits, name: "write-timeout", arg: "TIME", value: duration{&c.WriteTimeout, shortest, longest}, help: "for the client to read an answer"},
		{group: groupLimits, name: "idle-timeout", arg: "TIME", value: duration{&c.IdleTimeout, shortest, longest}, help: "for the next request on a connection"},
		{group: groupLimits, name: "request-timeout", arg: "TIME", value: duration{&c.RequestTimeout, shortest, longest}, help: "for a request that has to ask a source; X-Request-Timeout-Ms can only shorten it"},
		{group: groupLimits, name: "db-timeout", arg: "TIME", value: duration{&c.DBTimeout, shortest, longest}, help: "for the database to answer one query"},
		{group: groupLimits, name: "redis-timeout", arg: "TIME", value: duration{&c.RedisTimeout, shortest, longest}, help: "for Redis to answer"},
		{group: groupLimits, name: "members-timeout", arg: "TIME", value: duration{&c.MembersTimeout, shortest, longest}, help: "for the member service to answer; then users go out without it"},
		{group: groupLimits, name: "max-header-bytes", arg: "SIZE", value: size{&c.MaxHeaderBytes, minHeaderBytes, maxHeaderBytes}, help: "a longer request head is answered with 431; from 4KiB to 1MiB"},
		{group: groupLimits, name: "max-conns", arg: "N", value: count{&c.MaxConns, 1, maxConns}, number: true, help: "connections that are served at once; further ones are refused"},

		{group: groupDrain, name: "drain-delay", arg: "TIME", value: duration{&c.DrainDelay, 0, longest}, help: "on SIGTERM, keep serving this long while /ready says 503"},
		{group: groupDrain, name: "drain-timeout", arg: "TIME", value: duration{&c.DrainTimeout, shortest, longest}, help: "then, for open requests to finish"},

		{group: groupLog, name: "access-log", arg: "WHICH", value: access{&c.AccessLog}, help: "off, all, errors (status 400 and up), or 1/N: one of every N and every 5xx"},
		{group: groupLog, name: "log-level", arg: "LEVEL", value: level{&c.LogLevel}, help: "debug, info, warn or error"},
	}
}

// text is any string.
type text struct{ v *string }

func (t text) String() string { return *t.v }

func (t text) set(s string) error {
	*t.v = s
	return nil
}

// address is one that package listen can listen on.
type address struct {
	v        *string
	optional bool
}

func (a address) String() string { return *a.v }

func (a address) set(s string) error {
	if s != "" || !a.optional {
		if _, err := listen.Parse(s); err != nil {
			return err
		}
	}
	*a.v = s
	return nil
}

// cpus is a list of CPUs; "" and "all" are the zero List.
type cpus struct{ v *affinity.List }

func (c cpus) String() string { return c.v.String() }

func (c cpus) set(s string) error {
	list, err := affinity.ParseList(s)
	if err != nil {
		return err
	}
	if s == "" || list.String() == (affinity.List{}).String() {
		list = affinity.List{}
	}
	if list.Empty() {
		return fmt.Errorf("%q names no CPU", s)
	}
	*c.v = list
	return nil
}

// cells is how many processes serve.
type cells struct{ v *affinity.Cells }

func (c cells) String() string { return c.v.String() }

func (c cells) set(s string) error { return c.v.Set(s) }

// choice is one of a few words.
type choice struct {
	v   *string
	all []string
}

func (c choice) String() string { return *c.v }

func (c choice) set(s string) error {
	if !slices.Contains(c.all, s) {
		return fmt.Errorf("want %s, got %q", orList(c.all), s)
	}
	*c.v = s
	return nil
}

// orList is how a sentence lists words: "a, b or c".
func orList(words []string) string {
	n := len(words) - 1
	if n < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n], ", ") + " or " + words[n]
}

// source is the name of a database or a service. Only its beginning is checked here.
type source struct {
	v        *string
	want     string   // the forms, as a sentence shows them
	prefixes []string // each has to be followed by something
	optional bool
}

func databaseSource(v *string) source {
	return source{
		v: v, want: "sqlite:FILE, sqlite::memory:, mysql://… or postgres://…",
		prefixes: []string{"sqlite:", "mysql://", "postgres://", "postgresql://"},
	}
}

func redisSource(v *string) source {
	return source{v: v, want: "redis://…, rediss://… or unix://…", prefixes: []string{"redis://", "rediss://", "unix://"}, optional: true}
}

func memberSource(v *string) source {
	return source{v: v, want: "http://… or https://…", prefixes: []string{"http://", "https://"}, optional: true}
}

func (d source) String() string { return *d.v }

func (d source) set(s string) error {
	known := slices.ContainsFunc(d.prefixes, func(p string) bool { return strings.HasPrefix(s, p) && len(s) > len(p) })
	if !known && (s != "" || !d.optional) {
		// What follows the colon can hold a password.
		scheme, _, found := strings.Cut(s, ":")
		if found {
			scheme += ":"
		}
		return fmt.Errorf("want %s, got %q", d.want, scheme)
	}
	*d.v = s
	return nil
}

// count is a whole number.
type count struct {
	v        *int
	min, max int
}

func (c count) String() string { return strconv.Itoa(*c.v) }

func (c count) set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("want a whole number, got %q", s)
	}
	if err != nil || n < c.min || n > c.max {
		return fmt.Errorf("want %d to %d, got %s", c.min, c.max, s)
	}
	*c.v = n
	return nil
}

// size is a number of bytes.
type size struct {
	v        *Size
	min, max Size
}

func (z size) String() string { return z.v.String() }

func (z size) set(s string) error {
	n, err := ParseSize(s)
	if err != nil {
		return err
	}
	if n < z.min {
		return fmt.Errorf("want at least %s, got %s", z.min, s)
	}
	if n > z.max {
		return fmt.Errorf("want at most %s, got %s", z.max, s)
	}
	*z.v = n
	return nil
}

// duration is a time span as time.ParseDuration reads it.
type duration struct {
	v        *time.Duration
	min, max time.Duration
}

// String leaves out the zero parts that time.Duration writes: 1m0s is 1m.
func (d duration) String() string {
	s := d.v.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func (d duration) set(s string) error {
	t, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("want a time such as 10s or 500ms, got %q", s)
	}
	if t < d.min || t > d.max {
		return fmt.Errorf("want %s to %s, got %s", duration{v: &d.min}, duration{v: &d.max}, s)
	}
	*d.v = t
	return nil
}

// access is which requests are logged.
type access struct{ v *accesslog.Mode }

func (a access) String() string { return a.v.String() }

func (a access) set(s string) error {
	mode, err := accesslog.ParseMode(s)
	if err != nil {
		return err
	}
	*a.v = mode
	return nil
}

// level is the least level that is logged.
type level struct{ v *slog.Level }

func (l level) String() string { return strings.ToLower(l.v.String()) }

func (l level) set(s string) error {
	for _, known := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if s == strings.ToLower(known.String()) {
			*l.v = known
			return nil
		}
	}
	return fmt.Errorf("want debug, info, warn or error, got %q", s)
}
