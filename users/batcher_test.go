package users

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pinion/internal/stats"
)

// counting is a batcher over a made-up source, which answers every id with its negative.
type counting struct {
	*batcher[int64]
	work sync.WaitGroup

	mu      sync.Mutex
	queries [][]int64
	out     int                                    // now
	most    int                                    // at the same time
	do      func(ctx context.Context, n int) error // of query n, from 1 on
}

func newCounting(t *testing.T, lanes int, do func(ctx context.Context, n int) error) *counting {
	c := &counting{do: do}
	limits := SourceLimits{InFlight: lanes, Timeout: time.Minute}
	src := newSources(stats.NewRegistry(1), map[string]SourceLimits{"test": limits})["test"]
	src.guard.retries.tenths.Store(-1000) // none
	base, cancel := context.WithCancel(context.Background())
	c.batcher = newBatcher(base, &c.work, src, c.answer)
	t.Cleanup(func() {
		c.work.Wait() // nothing of an idle batcher runs
		cancel()
		if c.waiting != 0 || c.batcher.out != 0 || len(c.queue) != 0 {
			t.Errorf("idle, and %d ids wait in %d requests, %d queries are out", c.waiting, len(c.queue), c.batcher.out)
		}
	})
	return c
}

func (c *counting) answer(ctx context.Context, ids, values []int64) error {
	c.mu.Lock()
	c.queries = append(c.queries, slices.Clone(ids))
	n := len(c.queries)
	c.out++
	c.most = max(c.most, c.out)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.out--
		c.mu.Unlock()
	}()
	if c.do != nil {
		if err := c.do(ctx, n); err != nil {
			return err
		}
	}
	for i, id := range ids {
		values[i] = -id
	}
	return nil
}

func (c *counting) log() string { return fmt.Sprint(c.queries) }

// ask submits ids and checks the answer.
func (c *counting) ask(ctx context.Context, ids ...int64) error {
	r := c.submit(0, ids)
	if err := c.wait(ctx, r); err != nil {
		return err
	}
	for i, id := range ids {
		if r.values[i] != -id {
			return fmt.Errorf("id %d: got %d", id, r.values[i])
		}
	}
	return nil
}

// slow makes a query that takes d.
func slow(d time.Duration) func(context.Context, int) error {
	return func(ctx context.Context, _ int) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func idRange(from, n int64) []int64 {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = from + int64(i)
	}
	return ids
}

// An idle source is asked at once; what comes meanwhile is one query.
func TestBatcherGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounting(t, 4, slow(5*time.Millisecond))
		start := time.Now()
		if err := c.ask(t.Context(), 1); err != nil || time.Since(start) != 5*time.Millisecond {
			t.Errorf("alone: %v after %v", err, time.Since(start))
		}
		var wg sync.WaitGroup
		for id := int64(2); id <= 40; id++ {
			wg.Go(func() {
				if err := c.ask(t.Context(), id, id+1000); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if len(c.queries) != 3 || len(c.queries[2]) != 76 || c.most != 1 {
			t.Errorf("%d queries, %d at once: %s", len(c.queries), c.most, c.log())
		}
	})
}

// What a thousand requests for twenty ids cost.
func TestBatcherThousand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lanes = 8
		c := newCounting(t, lanes, slow(time.Millisecond))
		var wg sync.WaitGroup
		for i := range int64(1000) {
			wg.Go(func() {
				if err := c.ask(t.Context(), idRange(1+20*i, 20)...); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		const fewest = 20 * 1000 / maxQuery
		if len(c.queries) > fewest+lanes+2 || c.most > lanes {
			t.Errorf("%d queries, %d at once; want about %d, and at most %d", len(c.queries), c.most, fewest, lanes)
		}
		for _, ids := range c.queries {
			if len(ids) > maxQuery {
				t.Errorf("a query of %d ids", len(ids))
			}
		}
		if got := slices.Compact(slices.Sorted(slices.Values(slices.Concat(c.queries...)))); len(got) != 20*1000 {
			t.Errorf("%d ids asked for", len(got))
		}
	})
}

// A lane opens when a query has been out for a while, and when one is full; there are no
// more than allowed.
func TestBatcherLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounting(t, 3, slow(time.Second))
		var wg sync.WaitGroup
		ask := func(ids ...int64) {
			wg.Go(func() {
				if err := c.ask(t.Context(), ids...); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		sent := func(want int) {
			t.Helper()
			synctest.Wait()
			c.mu.Lock()
			defer c.mu.Unlock()
			if len(c.queries) != want {
				t.Errorf("after %d queries, want %d", len(c.queries), want)
			}
		}
		ask(1)
		sent(1)
		ask(2)
		time.Sleep(lanePatience - 1)
		ask(3)
		sent(1)
		time.Sleep(time.Nanosecond)
		sent(2)
		if got := fmt.Sprint(c.queries[1]); got != "[2 3]" {
			t.Errorf("second query %s", got)
		}
		ask(idRange(1000, maxQuery-1)...)
		sent(2)
		ask(4)
		sent(3) // full
		ask(idRange(2000, maxQuery)...)
		ask(5)
		time.Sleep(100 * time.Millisecond)
		sent(3) // no lane left
		wg.Wait()
		sent(5)
		if c.most != 3 {
			t.Errorf("%d at once", c.most)
		}
	})
}

// More ids than a query takes.
func TestBatcherSplits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounting(t, 8, slow(time.Millisecond))
		var wg sync.WaitGroup
		for _, n := range []int64{1000, 256, 257, 1} {
			wg.Go(func() {
				if err := c.ask(t.Context(), idRange(n, n)...); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		// One part of a request fails: so does the request.
		broken := errors.New("broken")
		c.queries = nil
		c.do = func(_ context.Context, n int) error {
			if n == 2 {
				return broken
			}
			return slow(time.Hour)(t.Context(), n)
		}
		start := time.Now()
		if err := c.ask(t.Context(), idRange(1, 1000)...); !errors.Is(err, broken) || time.Since(start) != 0 {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

// Requests that came after a write may have the ids of those from before it.
func TestBatcherSameIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounting(t, 1, slow(time.Millisecond))
		var wg sync.WaitGroup
		for _, ids := range [][]int64{{9}, {1, 2}, {3, 2, 1}, {1}} {
			wg.Go(func() {
				if err := c.ask(t.Context(), ids...); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if c.log() != "[[9] [1 2 3]]" {
			t.Error(c.log())
		}
	})
}

// A query lives for as long as somebody waits for it. Who leaves before it is sent is not
// asked for.
func TestBatcherLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(map[int]error)
		c := newCounting(t, 1, nil)
		c.do = func(ctx context.Context, n int) error {
			<-ctx.Done()
			ended[n] = context.Cause(ctx)
			return ctx.Err()
		}
		left := errors.New("left")
		first, leaveFirst := context.WithCancelCause(t.Context())
		second, leaveSecond := context.WithCancelCause(t.Context())
		third, leaveThird := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		for i, ctx := range []context.Context{first, second, third, second} {
			wg.Go(func() {
				if err := c.ask(ctx, int64(i+1)); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnavailable) {
					t.Errorf("%d: %v", i, err)
				}
			})
			synctest.Wait()
		}
		leaveThird(left) // in the queue
		synctest.Wait()
		leaveFirst(left)
		synctest.Wait()
		if c.log() != "[[1] [2 4]]" || !errors.Is(ended[1], left) || ended[2] != nil {
			t.Errorf("queries %s, ended %v", c.log(), ended)
		}
		leaveSecond(left)
		wg.Wait()
		synctest.Wait()
		if len(ended) != 2 || !errors.Is(ended[2], left) {
			t.Errorf("ended %v", ended)
		}

		// Who goes on without the answer leaves the query to its end.
		c.queries, c.do = nil, slow(time.Second)
		out, queued := c.submit(0, []int64{1}), c.submit(0, []int64{2})
		c.abandon(out)
		c.abandon(queued)
		start := time.Now()
		c.work.Wait()
		if time.Since(start) != time.Second || c.log() != "[[1]]" {
			t.Errorf("abandoned queries %s ended after %v", c.log(), time.Since(start))
		}
	})
}

// Whatever becomes of a query, its waiters hear of it, others do not, and the next one is
// sent.
func TestBatcherFailures(t *testing.T) {
	broken := errors.New("broken")
	for name, fail := range map[string]func() error{
		"error":  func() error { return broken },
		"panic":  func() error { panic("boom") },
		"goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCounting(t, 1, nil)
				c.do = func(ctx context.Context, n int) error {
					if err := slow(time.Millisecond)(ctx, n); err != nil || n != 2 {
						return err
					}
					return fail()
				}
				var wg sync.WaitGroup
				for i, ids := range [][]int64{{1}, {2, 3}, {4, 5}, {6}} {
					wg.Go(func() {
						err := c.ask(t.Context(), ids...)
						if failed := errors.Is(err, ErrUnavailable); failed != (i == 1 || i == 2) || !failed && err != nil {
							t.Errorf("request %d: %v", i, err)
						}
						if name == "error" && err != nil && !errors.Is(err, broken) {
							t.Errorf("%v does not wrap the cause", err)
						}
					})
					synctest.Wait()
					if i == 2 { // the second query gathers no more
						time.Sleep(time.Millisecond)
						synctest.Wait()
					}
				}
				wg.Wait()
				if c.log() != "[[1] [2 3 4 5] [6]]" {
					t.Error(c.log())
				}
			})
		})
	}
}
