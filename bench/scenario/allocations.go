package scenario

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"pinion/bench/measure"
	"pinion/bench/record"
)

const (
	counted   = 50_000 // requests that allocations are counted over
	countings = 3      // of each route, of which the least is taken
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
// on in the process beside the requests only ever adds to a counting, so the least counts:
// of those with requests, and of those with none, which are the looks' own.
func count(ctx context.Context, c *measure.Client, request []byte, admin string) (float64, error) {
	with, without := math.Inf(1), math.Inf(1)
	for range countings {
		// The first look makes buffers and a connection for those that follow.
		var counts [4]float64
		for i, n := range []int{warmup, 0, 0, counted} {
			o, err := c.Send(slices.Repeat([][]byte{request}, n), 0)
			if err != nil {
				return 0, err
			}
			if o.Failed > 0 {
				return 0, fmt.Errorf("%d requests failed", o.Failed)
			}
			if counts[i], err = mallocs(ctx, admin); err != nil {
				return 0, err
			}
		}
		without, with = min(without, counts[2]-counts[1]), min(with, counts[3]-counts[2])
	}
	return (with - without) / counted, nil
}

// mallocs reads how many objects the process has allocated.
func mallocs(ctx context.Context, admin string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if text, found := strings.CutPrefix(lines.Text(), "go_memstats_mallocs_total "); found {
			return strconv.ParseFloat(text, 64)
		}
	}
	return 0, fmt.Errorf("%s/metrics does not tell: %w", admin, lines.Err())
}
