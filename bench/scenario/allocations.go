package scenario

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"pinion/bench/measure"
	"pinion/bench/record"
)

const (
	counted   = 50_000 // requests that allocations are counted over
	countings = 3      // with requests, and without, of which the least are taken
)

// inline are the requests that the loops answer themselves.
func (b *Bench) inline() map[string][]byte {
	_, ids, _ := strings.Cut(b.Batch, "=")
	one, _, _ := strings.Cut(ids, ",")
	return map[string][]byte{
		"GET /api/ping":          measure.Request("GET", ping, ""),
		"GET /health":            measure.Request("GET", "/health", ""),
		"GET /api/users/{id}":    measure.Request("GET", "/api/users/"+one, ""),
		"GET /api/users?ids=":    measure.Request("GET", b.Batch, ""),
		"POST /api/users/lookup": measure.Request("POST", "/api/users/lookup", `{"ids":[`+ids+`]}`),
	}
}

// allocations counts the objects that the process allocates for requests, route by route.
func (b *Bench) allocations(ctx context.Context, conns int, p *measure.Process) ([]record.Sample, error) {
	c, err := measure.Dial(p.Addr, conns)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var samples []record.Sample
	requests := b.inline()
	routes := make([]string, 0, len(requests))
	for route := range requests {
		routes = append(routes, route)
	}
	slices.Sort(routes)
	for _, route := range routes {
		each, err := count(ctx, c, requests[route], p.Admin)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", route, err)
		}
		samples = append(samples, record.Sample{Route: route, Requests: counted, Allocations: &each})
	}
	return samples, nil
}

// count sends a request many times and returns the objects allocated for each. What goes
// on in the process beside the requests only ever adds to a counting, and the looks
// themselves allocate from hundreds of objects to thousands. So the least counts: of
// countings with requests, and of those that waited as long for none.
func count(ctx context.Context, c *measure.Client, request []byte, admin string) (float64, error) {
	// between counts from one look to the next.
	between := func(f func() error) (float64, error) {
		before, err := mallocs(ctx, admin)
		if err == nil {
			err = f()
		}
		if err != nil {
			return 0, err
		}
		after, err := mallocs(ctx, admin)
		return after - before, err
	}
	requests := slices.Repeat([][]byte{request}, counted)
	send := func(n int) func() error {
		return func() error {
			o, err := c.Send(ctx, requests[:n], 0)
			if err == nil && o.Failed > 0 {
				err = fmt.Errorf("%d of %d requests failed", o.Failed, n)
			}
			return err
		}
	}
	if _, err := between(send(warmup)); err != nil { // makes buffers for what follows
		return 0, err
	}
	with, without := math.Inf(1), math.Inf(1)
	for range countings {
		start := time.Now()
		n, err := between(send(counted))
		if err != nil {
			return 0, err
		}
		with = min(with, n)
		took := time.Since(start)
		if n, err = between(func() error { return pause(ctx, took) }); err != nil {
			return 0, err
		}
		without = min(without, n)
	}
	return (with - without) / counted, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

var errNoCount = errors.New("no go_memstats_mallocs_total")

// mallocs reads how many objects the process has allocated.
func mallocs(ctx context.Context, admin string) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: status %d", req.URL, resp.StatusCode)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if text, found := strings.CutPrefix(lines.Text(), "go_memstats_mallocs_total "); found {
			return strconv.ParseFloat(text, 64)
		}
	}
	return 0, fmt.Errorf("%s: %w", req.URL, cmp.Or(lines.Err(), errNoCount))
}
