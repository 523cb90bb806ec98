package config

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"time"

	"pinion/affinity"
	"pinion/internal/accesslog"
)

// Command is what the program is asked to do.
type Command string

// The commands.
const (
	Serve    Command = "" // no command: serve
	Topology Command = "topology"
	Version  Command = "version"
)

// Config is what the user wants. The comments name the flag; its help has unit,
// default and limits.
type Config struct {
	Command  Command
	JSON     bool     // -json, which only Topology has
	Warnings []string // each one line, to be logged once the logger is there

	sources map[string]string // by flag, where its value was given

	Addr   string         // -addr, as listen.Parse reads it
	Admin  string         // -admin, likewise; empty: no private port
	CPUs   affinity.List  // -cpus; the zero List: all allowed
	Cells  affinity.Cells // -cells
	Steer  string         // -steer, one of Steers
	Engine string         // -engine, one of Engines
	File   string         // -config

	DB        string // -db, a data source name: sqlite:, mysql:// or postgres://
	DBConns   int    // -db-conns; 0: the default of package sqldb
	Redis     string // -redis; empty: none
	Members   string // -members; empty: the table
	Demo      int    // -demo
	Tokens    string // -tokens; empty: no file
	L1Bytes   Size   // -l1-bytes
	AccessLog accesslog.Mode
	LogLevel  slog.Level

	ReadTimeout    time.Duration
	WriteTimeout   time.Duration
	IdleTimeout    time.Duration
	RequestTimeout time.Duration // of a request that has to ask a source
	DBTimeout      time.Duration // of one query
	RedisTimeout   time.Duration
	MembersTimeout time.Duration
	MaxHeaderBytes Size
	MaxConns       int

	DrainDelay   time.Duration
	DrainTimeout time.Duration
}

// The transports that -engine can name.
const (
	EngineLoop     = "loop" // event loops; Linux only
	EngineFastHTTP = "fasthttp"
)

// The ways of -steer to choose the loop of a new connection.
const (
	SteerAuto = "auto" // a loop of the cell whose NUMA node took its first packet
	SteerCPU  = "cpu"  // the loop of the CPU that took it
	SteerOff  = "off"  // by the kernel's hash of the addresses
)

// Steers are the values of -steer; the first one is the default.
func Steers() []string { return []string{SteerAuto, SteerCPU, SteerOff} }

// Engines are the transports of this system; the first one is the default.
func Engines() []string {
	if runtime.GOOS == "linux" {
		return []string{EngineLoop, EngineFastHTTP}
	}
	return []string{EngineFastHTTP}
}

// defaults is the Config of an empty command line.
func defaults() Config {
	return Config{
		Addr:           ":8080",
		Admin:          "127.0.0.1:6060",
		Steer:          Steers()[0],
		Engine:         Engines()[0],
		DB:             "sqlite:pinion.db",
		L1Bytes:        256 * MiB,
		AccessLog:      accesslog.Errors(),
		LogLevel:       slog.LevelInfo,
		ReadTimeout:    10 * time.Second,
		WriteTimeout:   10 * time.Second,
		IdleTimeout:    60 * time.Second,
		RequestTimeout: 5 * time.Second,
		DBTimeout:      2 * time.Second,
		RedisTimeout:   500 * time.Millisecond,
		MembersTimeout: time.Second,
		MaxHeaderBytes: 16 * KiB,
		MaxConns:       262144,
		DrainTimeout:   10 * time.Second,
	}
}

// Parse reads args (os.Args without the program's name), environ (as os.Environ gives
// it) and the file that they name. If help is asked for, it prints help to stdout and
// returns flag.ErrHelp. Every other error is a *UsageError, except one of stdout.
func Parse(args, environ []string, stdout io.Writer) (Config, error) {
	cfg := defaults()
	settings := cfg.settings()

	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		switch args[0] {
		case string(Version):
			if len(args) > 1 {
				return Config{}, usagef("", "version takes no arguments, got %q", args[1])
			}
			cfg.Command = Version
			return cfg, nil // a wrong environment is no reason to hide it
		case string(Topology):
			cfg.Command = Topology
			args = args[1:]
		case "help":
			args = []string{"-help"}
		default:
			return Config{}, usagef("", "unknown command %q; see server -help", args[0])
		}
	}
	flags, err := cfg.readFlags(args, settings)
	if errors.Is(err, flag.ErrHelp) {
		if err := printHelp(stdout, settings); err != nil {
			return Config{}, fmt.Errorf("print help: %w", err)
		}
		return Config{}, flag.ErrHelp
	}
	if err != nil {
		return Config{}, err
	}
	env, warnings := readEnv(environ, settings)
	cfg.Warnings = warnings

	file, err := readFile(settings, env, flags)
	if err != nil {
		return Config{}, err
	}
	// The lowest in rank comes first, and the next ones write over it.
	for _, given := range [][]given{file, env, flags} {
		if err := apply(given, settings); err != nil {
			return Config{}, err
		}
		for _, g := range given {
			if cfg.sources == nil {
				cfg.sources = make(map[string]string)
			}
			cfg.sources[g.name] = g.source
		}
	}
	return cfg, nil
}

// Wrong is a UsageError about the value of a flag that turned out wrong only when it
// was used. It names the place the value came from.
func (c *Config) Wrong(flag string, err error) error {
	source, given := c.sources[flag]
	if !given {
		source = "-" + flag
	}
	return &UsageError{Source: source, Err: err}
}

// given is a value somebody wrote.
type given struct {
	name   string // of the flag
	source string // for a UsageError
	text   string
}

// apply sets what is given.
func apply(all []given, settings []*setting) error {
	for _, g := range all {
		if err := find(settings, g.name).value.set(g.text); err != nil {
			return &UsageError{Source: g.source, Err: err}
		}
	}
	return nil
}

// readFile reads the file that env or flags name, if they do.
func readFile(settings []*setting, env, flags []given) ([]given, error) {
	var name given
	for _, g := range slices.Concat(env, flags) {
		if g.name == "config" {
			name = g
		}
	}
	if name.text == "" {
		return nil, nil
	}
	text, err := slurp(name.text)
	if err != nil {
		return nil, &UsageError{Source: name.source, Err: err}
	}
	return parseFile(name.text, text, settings)
}

// readFlags only collects: what the values mean is decided in order of rank.
func (c *Config) readFlags(args []string, settings []*setting) ([]given, error) {
	fs := flag.NewFlagSet("server", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the error says it all
	fs.Usage = func() {}
	var all []given
	for _, s := range settings {
		fs.Func(s.name, s.help, func(text string) error {
			all = append(all, given{name: s.name, source: "-" + s.name, text: text})
			return nil
		})
	}
	if c.Command == Topology {
		fs.BoolVar(&c.JSON, "json", false, "")
	}
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, usagef("", "%w; see server -help", err)
	}
	if fs.NArg() > 0 {
		return nil, usagef("", "unexpected argument %q; see server -help", fs.Arg(0))
	}
	return all, nil
}
