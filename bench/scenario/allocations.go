package scenario

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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
	countings = 2  // of requests, and
	looks     = 10 // of none, of which the least are taken
)

// inline are the requests that the loops answer themselves, by route.
func (b *Bench) inline() map[string]measure.Wrk {
	_, ids, _ := strings.Cut(b.Batch, "=")
	one, _, _ := strings.Cut(ids, ",")
	return map[string]measure.Wrk{
		"GET /api/ping":          {URL: ping},
		"GET /health":            {URL: "/health"},
		"GET /api/users/{id}":    {URL: "/api/users/" + one},
		"GET /api/users?ids=":    {URL: b.Batch},
		"POST /api/users/lookup": {URL: "/api/users/lookup", Method: "POST", Body: `{"ids":[` + ids + `]}`},
	}
}

// allocations counts the objects that the process allocates for requests, route by route.
func (b *Bench) allocations(ctx context.Context, conns int, p *measure.Process) ([]record.Sample, error) {
	var samples []record.Sample
	requests := b.inline()
	for _, route := range slices.Sorted(maps.Keys(requests)) {
		w := requests[route]
		w.CPUs, w.Conns, w.Seconds, w.URL = b.CPUs.Load, conns, 1, "http://"+p.Addr+w.URL
		s, err := b.count(ctx, &w, p.Admin)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", route, err)
		}
		s.Route = route
		samples = append(samples, s)
	}
	return samples, nil
}

// count sends many requests and returns how many, and the objects allocated for each. A
// look at the counter itself allocates from hundreds of objects to thousands, and what else
// the process does only ever adds to that: so the least counts, of loads and of looks
// without one.
func (b *Bench) count(ctx context.Context, w *measure.Wrk, admin string) (s record.Sample, err error) {
	var sent int64
	nothing := func() error { return nil }
	load := func() error {
		l, err := w.Run(ctx, b.Dir)
		if err == nil && (l.Errors != (record.Errors{}) || l.Requests == 0) {
			err = fmt.Errorf("%d answers, errors %+v", l.Requests, l.Errors)
		}
		if err == nil {
			sent = l.Requests
		}
		return err
	}
	if _, err := between(ctx, admin, load); err != nil { // makes buffers for those that follow
		return s, err
	}
	// So long that what a look may have more than another, some 2,000 objects, is less than
	// one in a hundred requests.
	w.Seconds = 4
	without, with := math.Inf(1), math.Inf(1)
	for range looks {
		n, err := between(ctx, admin, nothing)
		if err != nil {
			return s, err
		}
		without = min(without, n)
	}
	for range countings {
		n, err := between(ctx, admin, load)
		if err != nil {
			return s, err
		}
		if each := (n - without) / float64(sent); each < with {
			with, s.Requests = each, sent
		}
	}
	s.Allocations = &with
	return s, nil
}

// between returns how many objects the process allocates while f runs.
func between(ctx context.Context, admin string, f func() error) (float64, error) {
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
