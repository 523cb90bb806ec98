package scenario

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"pinion/bench/measure"
	"pinion/bench/record"
)

// counted is how many requests allocations are counted over.
const counted = 50_000

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
		// The first look makes buffers and a connection for those that follow.
		var counts [4]float64
		for i, n := range []int{warmup, 0, 0, counted} {
			o, err := c.Send(slices.Repeat([][]byte{requests[route]}, n), 0)
			if err == nil && o.Failed > 0 {
				err = fmt.Errorf("%d requests failed", o.Failed)
			}
			if err == nil {
				counts[i], err = mallocs(ctx, p.Admin)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", route, err)
			}
		}
		// What the counting itself allocates is in both differences.
		each := max(0, ((counts[3]-counts[2])-(counts[2]-counts[1]))/counted)
		samples = append(samples, record.Sample{Route: route, Requests: counted, Allocations: &each})
	}
	return samples, nil
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
