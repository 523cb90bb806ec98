package config

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pinion/affinity"
	"pinion/internal/accesslog"
)

// parse runs Parse with the file, if it is not "", named by -config.
func parse(t *testing.T, file string, environ, args []string) (Config, string, error) {
	t.Helper()
	path := ""
	if file != "" {
		path = filepath.Join(t.TempDir(), "pinion.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append([]string{"-config", path}, args...)
	}
	var out strings.Builder
	cfg, err := Parse(args, environ, &out)
	if out.Len() > 0 {
		t.Errorf("printed %q", out.String())
	}
	return cfg, path, err
}

// refused returns the message of an error that must be a *UsageError, with the
// directory of the file cut off.
func refused(t *testing.T, file string, environ, args []string) string {
	t.Helper()
	cfg, path, err := parse(t, file, environ, args)
	if err == nil {
		return fmt.Sprintf("no error: %+v", cfg)
	}
	var usage *UsageError
	if !errors.As(err, &usage) {
		t.Errorf("%T: %v", err, err)
	}
	if !reflect.DeepEqual(cfg, Config{}) {
		t.Errorf("an error and a Config: %+v", cfg)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
	return strings.ReplaceAll(err.Error(), filepath.Dir(path)+string(filepath.Separator), "")
}

func TestDefaults(t *testing.T) {
	cfg, _, err := parse(t, "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Addr: ":8080", Admin: "127.0.0.1:6060", Steer: "auto", Engine: Engines()[0],
		DB: "sqlite:pinion.db", L1Bytes: 256 << 20, AccessLog: accesslog.Errors(), LogLevel: slog.LevelInfo,
		ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, RequestTimeout: 5 * time.Second,
		DBTimeout: 2 * time.Second, RedisTimeout: 500 * time.Millisecond, MembersTimeout: time.Second,
		MaxHeaderBytes: 16384, MaxConns: 262144, DrainTimeout: 10 * time.Second,
	}
	if !reflect.DeepEqual(cfg, want) {
		t.Errorf("got  %+v\nwant %+v", cfg, want)
	}
}

// TestDefaultsAreAllowed catches a default outside its own limits.
func TestDefaultsAreAllowed(t *testing.T) {
	c := defaults()
	for _, s := range c.settings() {
		if err := s.value.set(s.value.String()); err != nil {
			t.Errorf("-%s %q: %v", s.name, s.value, err)
		}
	}
	if !reflect.DeepEqual(c, defaults()) {
		t.Errorf("they do not stay as they are: %+v", c)
	}
}

// values gives three values for each flag, none the default, with the Config field
// that changes and what it then prints.
func values() map[string]struct {
	field string
	text  [3]string
	print [3]string
} {
	type v = struct {
		field string
		text  [3]string
		print [3]string
	}
	same := func(field, a, b, c string) v { return v{field, [3]string{a, b, c}, [3]string{a, b, c}} }
	return map[string]v{
		"addr":             same("Addr", "1.2.3.4:5", "unix:/a", "[::1]:80"),
		"admin":            same("Admin", ":1", "", "unix:b"),
		"cpus":             same("CPUs", "3", "0-7:2/4", "9,1"),
		"cells":            same("Cells", "off", "1", "1024"),
		"steer":            {"Steer", [3]string{"cpu", "off", "cpu"}, [3]string{"cpu", "off", "cpu"}},
		"db":               same("DB", "sqlite:a", "mysql://a:b@c/d", "postgres://e"),
		"db-conns":         same("DBConns", "1", "2", "10000"),
		"redis":            same("Redis", "redis://a", "rediss://b:1/2", "unix:///c"),
		"members":          same("Members", "http://a", "https://b:1/c", "http://d"),
		"demo":             same("Demo", "1", "2", "10000000"),
		"tokens":           same("Tokens", "a", "b", "c"),
		"l1-bytes":         {"L1Bytes", [3]string{"1MiB", "2000000", "3gb"}, [3]string{"1MiB", "2000000", "3000000000"}},
		"access-log":       same("AccessLog", "off", "all", "1/10"),
		"log-level":        {"LogLevel", [3]string{"debug", "warn", "error"}, [3]string{"DEBUG", "WARN", "ERROR"}},
		"read-timeout":     same("ReadTimeout", "1ms", "2s", "3m0s"),
		"write-timeout":    same("WriteTimeout", "1ms", "2s", "3m0s"),
		"idle-timeout":     same("IdleTimeout", "1ms", "2s", "3m0s"),
		"db-timeout":       same("DBTimeout", "1ms", "3s", "4m0s"),
		"redis-timeout":    same("RedisTimeout", "1ms", "2s", "3m0s"),
		"members-timeout":  same("MembersTimeout", "1ms", "2s", "3m0s"),
		"request-timeout":  same("RequestTimeout", "1ms", "2s", "3m0s"),
		"max-header-bytes": same("MaxHeaderBytes", "4KiB", "5000", "1MiB"),
		"max-conns":        same("MaxConns", "1", "2", "3"),
		"drain-delay":      same("DrainDelay", "1ns", "2s", "1h0m0s"),
		"drain-timeout":    same("DrainTimeout", "1ms", "2s", "3m0s"),
	}
}

// TestSourcesAndOrder gives each flag by each set of sources. Of file, environment
// and flag, the last one that is given must win.
func TestSourcesAndOrder(t *testing.T) {
	all := values()
	c := defaults()
	for _, s := range c.settings() {
		if _, ok := all[s.name]; !ok && s.name != "engine" && s.name != "config" { // those have one value, and their own tests
			t.Errorf("no values for -%s", s.name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v := all[name]
		for sources := 1; sources < 8; sources++ {
			file, winner := "", 0
			var environ, args []string
			if sources&1 != 0 {
				file = name + ": " + v.text[0]
			}
			if sources&2 != 0 {
				environ, winner = []string{"PINION_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "=" + v.text[1]}, 1
			}
			if sources&4 != 0 {
				args, winner = []string{"-" + name + "=" + v.text[2]}, 2
			}
			cfg, path, err := parse(t, file, environ, args)
			if err != nil {
				t.Errorf("%s, sources %03b: %v", name, sources, err)
				continue
			}
			got := fmt.Sprint(reflect.ValueOf(cfg).FieldByName(v.field))
			if got != v.print[winner] {
				t.Errorf("%s, sources %03b: %s = %s, want %s", name, sources, v.field, got, v.print[winner])
			}
			// A late complaint names the winner.
			late := cfg.Wrong(name, errors.New("no good")).Error()
			if sources&6 == 0 && !strings.Contains(late, "pinion.yaml:1: "+name) ||
				sources&6 == 2 && !strings.HasPrefix(late, "PINION_") ||
				sources&4 != 0 && !strings.HasPrefix(late, "-"+name+": ") {
				t.Errorf("%s, sources %03b: %s", name, sources, late)
			}
			// Nothing else may have changed.
			want := defaults()
			cfg.sources = nil
			want.File = path
			reflect.ValueOf(&want).Elem().FieldByName(v.field).Set(reflect.ValueOf(cfg).FieldByName(v.field))
			if !reflect.DeepEqual(cfg, want) {
				t.Errorf("%s, sources %03b: got %+v\nwant %+v", name, sources, cfg, want)
			}
		}
	}
}

// TestEnviron hands a configuration on to another process.
func TestEnviron(t *testing.T) {
	file, args := "", []string(nil)
	for i, name := range slices.Sorted(maps.Keys(values())) {
		if text := values()[name].text[0]; i%2 == 0 {
			file += fmt.Sprintf("%s: %s\n", name, text)
		} else {
			args = append(args, "-"+name+"="+text)
		}
	}
	cfg, path, err := parse(t, file, []string{"PINION_DEMO=5", "HOME=/x"}, args)
	if err != nil {
		t.Fatal(err)
	}
	environ := cfg.Environ([]string{"PINION_DEMO=5", "HOME=/x", "PINION_CONFIG=" + path, "PINION_CELL=1"})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(environ, "HOME=/x") || !slices.Contains(environ, "PINION_CELL=1") {
		t.Errorf("what is not ours is gone: %q", environ)
	}
	got, err := Parse(nil, environ, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	got.sources, cfg.sources, cfg.File = nil, nil, ""
	if !reflect.DeepEqual(got, cfg) {
		t.Errorf("got  %+v\nwant %+v", got, cfg)
	}
}

func TestConfigFromEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(path, []byte("demo: 7"), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{"PINION_CONFIG=" + path}
	cfg, err := Parse(nil, environ, io.Discard)
	if err != nil || cfg.Demo != 7 || cfg.File != path {
		t.Errorf("got %+v, %v", cfg, err)
	}
	cfg, err = Parse([]string{"-config="}, environ, io.Discard)
	if err != nil || cfg.Demo != 0 || cfg.File != "" {
		t.Errorf("-config= did not win: %+v, %v", cfg, err)
	}
}

func TestEmptyValues(t *testing.T) {
	cfg, _, err := parse(t, "", []string{"PINION_ADMIN=", "PINION_CPUS=", "PINION_TOKENS="}, nil)
	if err != nil || cfg.Admin != "" || cfg.CPUs.String() != "all" {
		t.Errorf("got %+v, %v", cfg, err)
	}
}

func TestRepeatedFlag(t *testing.T) {
	cfg, _, err := parse(t, "", nil, []string{"-demo", "1", "--demo=2"})
	if err != nil || cfg.Demo != 2 {
		t.Errorf("demo = %d, %v; the last one counts", cfg.Demo, err)
	}
}

func TestCPUs(t *testing.T) {
	cfg, _, err := parse(t, "", nil, []string{"-cpus", "0-7,16-23"})
	if err != nil {
		t.Fatal(err)
	}
	want, err := affinity.ParseSet("0-7,16-23")
	if err != nil {
		t.Fatal(err)
	}
	if !cfg.CPUs.In(want).Equal(want) {
		t.Errorf("got %v", cfg.CPUs)
	}
}

func TestWrongValues(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"addr", "", `address "": want host:port or unix:/path`},
		{"addr", ":http", `address ":http": the port must be a number from 0 to 65535`},
		{"admin", "6060", `address "6060": want host:port or unix:/path`},
		{"cpus", ",", `"," names no CPU`},
		{"cells", "0", `cells "0": want auto, off or a number from 1 to 1024`},
		{"cells", "", `cells "": want auto, off or a number from 1 to 1024`},
		{"steer", "rss", `want auto, cpu or off, got "rss"`},
		{"engine", "turbo", "want " + strings.Join(Engines(), " or ") + `, got "turbo"`},
		{"db", "ftp://user:password@x", `want sqlite:FILE, sqlite::memory:, mysql://… or postgres://…, got "ftp:"`},
		{"db", "sqlite:", `want sqlite:FILE, sqlite::memory:, mysql://… or postgres://…, got "sqlite:"`},
		{"db", "pinion.db", `want sqlite:FILE, sqlite::memory:, mysql://… or postgres://…, got "pinion.db"`},
		{"db", "mysql:user:password@x", `want sqlite:FILE, sqlite::memory:, mysql://… or postgres://…, got "mysql:"`},
		{"db", "", `want sqlite:FILE, sqlite::memory:, mysql://… or postgres://…, got ""`},
		{"redis", "localhost:6379", `want redis://…, rediss://… or unix://…, got "localhost:"`},
		{"members", "localhost", `want http://… or https://…, got "localhost"`},
		{"demo", "-1", "want 0 to 10000000, got -1"},
		{"demo", "99999999999999999999", "want 0 to 10000000, got 99999999999999999999"},
		{"demo", "1e3", `want a whole number, got "1e3"`},
		{"demo", "", `want a whole number, got ""`},
		{"l1-bytes", "1023KiB", "want at least 1MiB, got 1023KiB"},
		{"l1-bytes", "256M", `want a size such as 256MiB, 64MB or 4096, got "256M"`},
		{"l1-bytes", "9223372036854775807", "want at most 4194304TiB, got 9223372036854775807"},
		{"access-log", "some", `want off, all, errors or 1/N, got "some"`},
		{"log-level", "INFO", `want debug, info, warn or error, got "INFO"`},
		{"read-timeout", "0s", "want 1ms to 1h, got 0s"},
		{"write-timeout", "-1s", "want 1ms to 1h, got -1s"},
		{"idle-timeout", "10", `want a time such as 10s or 500ms, got "10"`},
		{"request-timeout", "2h", "want 1ms to 1h, got 2h"},
		{"max-header-bytes", "4095", "want at least 4KiB, got 4095"},
		{"max-header-bytes", "2MiB", "want at most 1MiB, got 2MiB"},
		{"max-conns", "0", "want 1 to 10000000, got 0"},
		{"drain-delay", "-1ns", "want 0s to 1h, got -1ns"},
		{"drain-timeout", "soon\n", `want a time such as 10s or 500ms, got "soon\n"`},
	} {
		flagName, env := "-"+tc.name, "PINION_"+strings.ToUpper(strings.ReplaceAll(tc.name, "-", "_"))
		if got, want := refused(t, "", nil, []string{flagName, tc.text}), flagName+": "+tc.want; got != want {
			t.Errorf("flag:\n got %s\nwant %s", got, want)
		}
		if got, want := refused(t, "", []string{env + "=" + tc.text}, nil), env+": "+tc.want; got != want {
			t.Errorf("environment:\n got %s\nwant %s", got, want)
		}
		if tc.name == "demo" || tc.name == "max-conns" || tc.name == "db-conns" { // text is not a number there
			continue
		}
		got := refused(t, fmt.Sprintf("# a file\n\n%s: %q\n", tc.name, tc.text), nil, nil)
		if want := "pinion.yaml:3: " + tc.name + ": " + tc.want; got != want {
			t.Errorf("file:\n got %s\nwant %s", got, want)
		}
	}
	// The words are those of package affinity.
	if got := refused(t, "", nil, []string{"-cpus", "0-"}); !strings.HasPrefix(got, "-cpus: ") || !strings.Contains(got, `0-`) {
		t.Errorf("-cpus 0-: %s", got)
	}
}

// TestHiddenMistakes has wrong values that another source beats.
func TestHiddenMistakes(t *testing.T) {
	if got, want := refused(t, "demo: -1", nil, []string{"-demo", "1"}), "pinion.yaml:1: demo: want 0 to 10000000, got -1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := refused(t, "", []string{"PINION_DEMO=-1"}, []string{"-demo", "1"}), "PINION_DEMO: want 0 to 10000000, got -1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := refused(t, "", nil, []string{"-demo", "-1", "-demo", "1"}), "-demo: want 0 to 10000000, got -1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWrongCommandLines(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"-nothing"}, "flag provided but not defined: -nothing; see server -help"},
		{[]string{"-addr"}, "flag needs an argument: -addr; see server -help"},
		{[]string{"serve"}, `unknown command "serve"; see server -help`},
		{[]string{""}, `unknown command ""; see server -help`},
		{[]string{"-demo", "1", "2"}, `unexpected argument "2"; see server -help`},
		{[]string{"-demo", "1", "version"}, `unexpected argument "version"; see server -help`},
		{[]string{"--", "-demo"}, `unexpected argument "-demo"; see server -help`},
		{[]string{"version", "-demo"}, `version takes no arguments, got "-demo"`},
		{[]string{"-config", missing}, "-config: open " + missing + ": no such file or directory"},
	} {
		if got := refused(t, "", nil, tc.args); got != tc.want {
			t.Errorf("%q:\n got %s\nwant %s", tc.args, got, tc.want)
		}
	}
	if got, want := refused(t, "", []string{"PINION_CONFIG=" + missing}, nil), "PINION_CONFIG: open "+missing+": no such file or directory"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	_, _, err := parse(t, "", nil, []string{"-config", missing})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v does not wrap its cause", err)
	}
}

func TestVersion(t *testing.T) {
	cfg, err := Parse([]string{"version"}, []string{"PINION_DEMO=wrong"}, io.Discard)
	if err != nil || cfg.Command != Version {
		t.Errorf("got %q, %v", cfg.Command, err)
	}
}

func TestWarnings(t *testing.T) {
	environ := []string{
		"PATH=/bin", "PINION=x", "PINIONS_A=x",
		"PINION_CPU=0", "PINION_max_conns=1", "PINION_=", "PINION_NO_VALUE",
		"PINION_DEMO=1", "PINION_DEMO=2", "PINION_AFFINITY=0-1",
		// As Kubernetes sets them for services called pinion, pinion-db and pinion-admin.
		"PINION_SERVICE_HOST=10.0.0.1", "PINION_SERVICE_PORT=80", "PINION_SERVICE_PORT_HTTP=80", "PINION_PORT=tcp://10.0.0.1:80",
		"PINION_PORT_80_TCP=tcp://10.0.0.1:80", "PINION_PORT_80_TCP_PROTO=tcp", "PINION_PORT_80_TCP_PORT=80", "PINION_PORT_80_TCP_ADDR=10.0.0.1",
		"PINION_DB_SERVICE_HOST=10.0.0.2", "PINION_DB_PORT_53_UDP_ADDR=10.0.0.2", "PINION_ADMIN_PORT=tcp://10.0.0.3:80", "PINION_DB_SERVICE_PORT_WEB_UI=80",
		// Nearly so.
		"PINION_PORT_X_TCP=1", "PINION_PORT_80_HTTP=1", "PINION_PORT__TCP=1", "PINION_HOST=1",
	}
	cfg, err := Parse(nil, environ, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range []string{
		"PINION_", "PINION_CPU", "PINION_HOST", "PINION_NO_VALUE",
		"PINION_PORT_80_HTTP", "PINION_PORT_X_TCP", "PINION_PORT__TCP", "PINION_max_conns",
	} {
		want = append(want, fmt.Sprintf("%s is set in the environment, but there is no such flag", name))
	}
	if !slices.Equal(cfg.Warnings, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(cfg.Warnings, "\n"), strings.Join(want, "\n"))
	}
	if cfg.Demo != 1 {
		t.Errorf("demo = %d: of a repeated variable the first one counts", cfg.Demo)
	}
}

var update = flag.Bool("update", false, "write testdata anew")

func TestHelp(t *testing.T) {
	golden := "testdata/help.txt"
	if len(Engines()) == 1 {
		golden = "testdata/help_one_engine.txt"
	}
	var first string
	for _, args := range [][]string{{"-h"}, {"-help"}, {"--help"}, {"help"}, {"-demo", "wrong", "-h"}} {
		var out strings.Builder
		if _, err := Parse(args, []string{"PINION_DEMO=wrong"}, &out); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%q: error %v", args, err)
		}
		if first == "" {
			first = out.String()
		}
		if out.String() != first {
			t.Errorf("%q prints something else:\n%s", args, out.String())
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(first), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if first != string(want) {
		t.Errorf("help differs from %s; if that is meant, run go test with -update. Got\n%s", golden, first)
	}
	for l := range strings.Lines(first) {
		if len(l) > columns+1 {
			t.Errorf("%d columns: %s", len(l)-1, l)
		}
	}
}

// closed is a stdout that somebody closed.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestHelpCannotBePrinted(t *testing.T) {
	_, err := Parse([]string{"-h"}, nil, closed{})
	if !errors.Is(err, io.ErrClosedPipe) || errors.Is(err, flag.ErrHelp) {
		t.Errorf("error %v", err)
	}
}
