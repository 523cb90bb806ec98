package check

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"pinion/bench/measure"
	"pinion/bench/peers"
	"pinion/bench/peers/work"
)

// TestPeers starts every peer and checks it.
func TestPeers(t *testing.T) {
	for _, name := range []string{"gcc", "nginx", "haproxy", "taskset"} {
		_, err := exec.LookPath(name)
		if err != nil {
			_, err = exec.LookPath("/usr/sbin/" + name)
		}
		if err != nil && os.Getenv("CI") != "" {
			t.Fatal(err)
		} else if err != nil {
			t.Skip(err)
		}
	}
	dir := t.TempDir()
	// nginx's workers drop root, and have to get at their files.
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	all := peers.All()
	binaries, err := peers.Build(t.Context(), "../..", dir, all)
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	users := filepath.Join(dir, "users.json")
	sizesOf := map[string]map[string]int{}
	batch := ""
	for i := range 2 * len(all) {
		p, closes := &all[i/2], i%2 == 1
		if closes && !p.Canned {
			continue // the same command
		}
		name := p.Name
		if closes {
			name += " close"
		}
		t.Run(name, func(t *testing.T) {
			b := binaries[p.Name]
			if len(b.SHA256) != 64 || b.Version == "" && p.Name != "floor" {
				t.Errorf("binary %+v", b)
			}
			addr, err := measure.FreeAddr()
			if err != nil {
				t.Fatal(err)
			}
			scratch := filepath.Join(dir, strconv.Itoa(i))
			if err := os.Mkdir(scratch, 0o755); err != nil {
				t.Fatal(err)
			}
			command, err := p.Command(b.Path, peers.Options{Addr: addr, Workers: 1, Users: users, Dir: scratch, Close: closes})
			if err != nil {
				t.Fatal(err)
			}
			s, err := measure.Start(t.Context(), measure.Config{Name: p.Name, Command: command, Addr: addr, Log: filepath.Join(scratch, "log")})
			if err != nil {
				t.Fatal(err)
			}
			if p.Name == "pinion" {
				if err = peers.Fixture(t.Context(), addr, users); err == nil {
					batch, err = batchOf(users)
				}
			}
			var sizes map[string]int
			if err == nil {
				sizes, err = Check(t.Context(), Config{Addr: addr, Peer: p, Users: users, Batch: batch, Seed: seed, Closes: closes})
			}
			if stopped := s.Stop(); stopped != nil || err != nil {
				t.Fatal(err, stopped)
			}
			for _, route := range peers.Routes() {
				if p.Has(route) != (sizes[route] > 100) {
					t.Errorf("%s: %d bytes", route, sizes[route])
				}
			}
			t.Logf("%s %.12s: bytes of answers %v", b.Version, b.SHA256, sizes)
			sizesOf[p.Name] = sizes
		})
	}
	if e, f := sizesOf["engine"][work.RoutePing], sizesOf["floor"][work.RoutePing]; e != f {
		t.Errorf("the engine's ping has %d bytes and the floor's %d", e, f)
	}
	for route, n := range sizesOf["pinion"] {
		if e := sizesOf["engine"][route]; e != n {
			t.Errorf("%s: the product answers %d bytes and its engine %d", route, n, e)
		}
	}
}

// batchOf returns a request for 20 users of a file.
func batchOf(users string) (string, error) {
	s, err := work.Load(users)
	if err != nil {
		return "", err
	}
	var ids []int64
	for _, u := range s.Users()[:20] {
		ids = append(ids, u.ID)
	}
	e, err := work.NewUsers(s, ids)
	return e.Target, err
}
