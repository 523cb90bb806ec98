package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"pinion/bench/measure"
)

const (
	perRequest = 20 // ids
	settle     = 200 * time.Millisecond
)

// connections returns the numbers of connections that are measured.
func connections() []int { return []int{64, 256} }

// cases returns what is measured, in this order: L1 finds what L2 left.
func cases() []string { return []string{"cold", "L2", "L1"} }

type bench struct {
	*sources
	users   int
	servers [2]*server // the plain one first
	samples []sample
}

// sample is one measurement. Figures are per request unless they say otherwise.
type sample struct {
	what, service       string
	conns, round        int
	requests            int
	micros              float64 // CPU time of the service
	p50, p99            time.Duration
	sql, redis, members float64
	failed, degraded    int // in all
}

// check compares the answers of both services, also about ids that nobody has.
func (b *bench) check(ctx context.Context) error {
	if err := b.reset(ctx); err != nil {
		return err
	}
	for _, s := range b.servers {
		if err := s.restart(ctx); err != nil {
			return err
		}
	}
	ids := make([]int64, 0, 2000)
	for id := range int64(cap(ids)) {
		if id%50 == 0 {
			id += int64(b.users)
		}
		ids = append(ids, id+1)
	}
	for range 2 { // pinion answers the second time from memory
		for chunk := range slices.Chunk(ids, 100) {
			var answers [2][]byte
			for i, s := range b.servers {
				body, err := s.get(ctx, list(chunk))
				if err != nil {
					return fmt.Errorf("%s: %w", s.Name, err)
				}
				answers[i] = bytes.TrimSuffix(body, []byte("\n"))
			}
			if !bytes.Equal(answers[0], answers[1]) {
				return fmt.Errorf("the services do not agree:\n%s\n%s", answers[0], answers[1])
			}
		}
	}
	return nil
}

// round measures every case for both services.
func (b *bench) round(ctx context.Context, round, conns int) error {
	// The first fifth of the users is for warming up.
	var warm, measured []int64
	for id := int64(1); id <= int64(b.users); id++ {
		if id <= int64(b.users/5) {
			warm = append(warm, id)
		} else {
			measured = append(measured, id)
		}
	}
	r := rand.New(rand.NewPCG(uint64(round), uint64(conns)))
	r.Shuffle(len(measured), func(i, j int) { measured[i], measured[j] = measured[j], measured[i] })
	warming, asking := requestsFor(warm, perRequest), requestsFor(measured, perRequest)

	if err := b.reset(ctx); err != nil {
		return err
	}
	for _, what := range cases() {
		if what == "L2" {
			if err := b.fillL2(ctx, warming, asking); err != nil {
				return fmt.Errorf("fill L2: %w", err)
			}
		}
		for i := range b.servers {
			s := b.servers[(i+round)%2] // nobody is always first
			first, atLeast := warming, time.Duration(0)
			if what == "L1" {
				// As often as it takes to measure: nothing is used up. What the cases before
				// left in L1 may be too old by now, so the ids themselves warm it up.
				first, atLeast = asking, time.Second
			} else if err := s.restart(ctx); err != nil {
				return err
			}
			m, err := b.measure(ctx, s, conns, first, asking, atLeast)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", what, s.Name, err)
			}
			m.what, m.round = what, round
			b.samples = append(b.samples, m)
		}
	}
	return nil
}

// fillL2 has pinion ask the sources for all users, and leave them in Redis. The cold case
// leaves some out, where Redis is too slow for so many connections.
func (b *bench) fillL2(ctx context.Context, requests ...[][]byte) error {
	if err := b.reset(ctx); err != nil {
		return err
	}
	pinion := b.servers[1]
	if err := pinion.restart(ctx); err != nil {
		return err
	}
	l, err := measure.Dial(pinion.Addr, 4)
	if err != nil {
		return err
	}
	defer l.Close()
	_, err = l.Send(ctx, slices.Concat(requests...), 0)
	time.Sleep(settle)
	return err
}

// measure sends requests to s, after those of warm.
func (b *bench) measure(ctx context.Context, s *server, conns int, warm, requests [][]byte, atLeast time.Duration) (m sample, err error) {
	m.service, m.conns = s.Name, conns
	l, err := measure.Dial(s.Addr, conns)
	if err != nil {
		return m, err
	}
	defer l.Close()
	if _, err := l.Send(ctx, warm, 0); err != nil {
		return m, err
	}
	before, start, err := b.read(ctx, s)
	if err != nil {
		return m, err
	}
	o, err := l.Send(ctx, requests, atLeast)
	if err != nil {
		return m, err
	}
	// What still goes on after the last answer, as filling L2 may, belongs to it.
	time.Sleep(settle)
	after, end, err := b.read(ctx, s)
	if err != nil {
		return m, err
	}
	m.requests, m.failed, m.degraded = len(o.Latencies), o.Failed, o.Degraded
	n := float64(m.requests)
	m.micros = float64((end - start).Nanoseconds()) / 1e3 / n
	m.p50, m.p99 = measure.Percentile(o.Latencies, 0.5), measure.Percentile(o.Latencies, 0.99)
	m.sql = float64(after.sql-before.sql) / n
	m.redis = float64(after.redis-before.redis) / n
	m.members = float64(after.members-before.members) / n
	return m, ctx.Err()
}

// read reads all counters.
func (b *bench) read(ctx context.Context, s *server) (a asked, cpu time.Duration, err error) {
	if a, err = b.asked(ctx); err == nil {
		cpu, err = s.process.CPU()
	}
	return a, cpu, err
}

// requestsFor returns requests for size ids each, in their order. What is left over is
// left out.
func requestsFor(ids []int64, size int) [][]byte {
	requests := make([][]byte, 0, len(ids)/size)
	for chunk := range slices.Chunk(ids, size) {
		if len(chunk) == size {
			requests = append(requests, measure.Request("GET", "/api/users?ids="+list(chunk), ""))
		}
	}
	return requests
}

// list writes ids as the API wants them.
func list(ids []int64) string {
	var text []byte
	for i, id := range ids {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, id, 10)
	}
	return string(text)
}
