package users

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	// maxQuery is how many ids a source is asked for at once.
	maxQuery = 256
	// Requests wait for a query that is out for twice the time that queries take, but
	// from lanePatience to lanePatienceMax, before another one is sent beside it. A slow
	// database gets larger queries, and not more; one that hangs does not hold up the rest.
	lanePatience    = 10 * time.Millisecond
	lanePatienceMax = 100 * time.Millisecond
	// paceWeight is what the last query counts in the mean time of queries.
	paceWeight = 8
)

// batcher turns requests for ids into few queries of one source. An idle source is asked
// at once. While a query is out, the next one gathers what comes; it is sent when the one
// before has returned, and beside it when it is full or when the one before takes long.
// So batches grow with the load, and nobody waits without one.
//
// A query only answers requests that were made before it was sent: who asks after a write
// gets what was read after the write.
type batcher[V any] struct {
	src *source
	// fetch asks the source: values[i] is to answer ids[i]. values is empty at first. It
	// keeps neither.
	fetch func(ctx context.Context, ids []int64, values []V) error
	lanes int             // queries out at the same time, at most
	base  context.Context // parent of every query
	work  *sync.WaitGroup // counts the queries

	mu      sync.Mutex
	queue   []*request[V]
	waiting int           // ids in queue that no query has taken
	out     int           // queries
	newest  time.Time     // when the youngest of them was sent
	pace    time.Duration // moving mean of the time that a query takes; 0: none has returned
	alarm   *time.Timer
	armed   bool
}

func newBatcher[V any](base context.Context, work *sync.WaitGroup, src *source,
	fetch func(ctx context.Context, ids []int64, values []V) error,
) *batcher[V] {
	return &batcher[V]{src: src, fetch: fetch, lanes: cap(src.guard.slots), base: base, work: work}
}

// request is what one caller asks of a batcher. ids and values are the caller's again
// when done is closed; until then, and after the caller has left, they are not to be
// touched.
type request[V any] struct {
	ids    []int64
	values []V // values[i] answers ids[i], if err is nil
	err    error
	done   chan struct{} // closed when values and err are final
	shard  uint64

	// By the batcher's lock.
	taken   int         // ids that queries have taken
	open    int         // ids that are not answered yet
	left    bool        // nobody waits any more
	queries []*query[V] // that have taken some
}

// query is one call of the source, for the requests that it has parts of.
type query[V any] struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	ids     []int64
	values  []V
	parts   []part[V]
	at      []int // if not nil: the ids of all parts, one after the other, are at these places
	sent    time.Time
	waiters int // requests that have not left; by the batcher's lock
}

// part is n ids of a request, from the one at index from on.
type part[V any] struct {
	request *request[V]
	from, n int
}

// submit asks for ids, which must not be empty, and does not wait.
func (b *batcher[V]) submit(shard uint64, ids []int64) *request[V] {
	r := &request[V]{ids: ids, values: make([]V, len(ids)), shard: shard, open: len(ids), done: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, r)
	b.waiting += len(ids)
	b.advance()
	return r
}

// wait returns when r is answered or has failed, or leaves it when ctx ends.
func (b *batcher[V]) wait(ctx context.Context, r *request[V]) error {
	select {
	case <-r.done:
		if r.err != nil {
			b.leave(r, errNoWaiters) // what other queries still look for
		}
		return r.err
	case <-ctx.Done():
		b.leave(r, context.Cause(ctx))
		return ctx.Err()
	}
}

// leave takes r back. Queries that nobody else waits for are ended, for cause.
func (b *batcher[V]) leave(r *request[V], cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(r)
	for _, q := range r.queries {
		if q.waiters--; q.waiters == 0 {
			q.cancel(cause)
		}
	}
	r.queries = nil
}

// abandon is leave for a caller that goes on without an answer that it still wanted: a
// query that is out goes on too. How it ends says how well the source is.
func (b *batcher[V]) abandon(r *request[V]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(r)
}

// drop keeps r out of further queries.
func (b *batcher[V]) drop(r *request[V]) {
	if !r.left {
		r.left = true
		b.waiting -= len(r.ids) - r.taken
	}
	if b.waiting == 0 { // all that are left in the queue have gone
		clear(b.queue)
		b.queue = b.queue[:0]
	}
}

// advance sends the queries that are due, and sets the alarm for the next one.
func (b *batcher[V]) advance() {
	for b.waiting > 0 && b.out < b.lanes {
		if b.out > 0 && b.waiting < maxQuery {
			if b.armed {
				return
			}
			if d := b.patience() - time.Since(b.newest); d > 0 {
				b.arm(d)
				return
			}
		}
		b.send()
	}
}

func (b *batcher[V]) patience() time.Duration {
	return min(max(2*b.pace, lanePatience), lanePatienceMax)
}

func (b *batcher[V]) arm(d time.Duration) {
	b.armed = true
	if b.alarm != nil {
		b.alarm.Reset(d)
		return
	}
	b.alarm = time.AfterFunc(d, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.armed = false
		b.advance()
	})
}

// send takes up to maxQuery ids from the queue and asks for them on a goroutine.
func (b *batcher[V]) send() {
	q := &query[V]{}
	q.ctx, q.cancel = context.WithCancelCause(b.base)
	size, used := 0, 0
	for _, r := range b.queue {
		if r.left {
			used++
			continue
		}
		if size == maxQuery {
			break
		}
		n := min(maxQuery-size, len(r.ids)-r.taken)
		q.parts = append(q.parts, part[V]{request: r, from: r.taken, n: n})
		q.waiters++
		r.queries = append(r.queries, q)
		r.taken += n
		size += n
		if r.taken < len(r.ids) {
			break
		}
		used++
	}
	b.queue = slices.Delete(b.queue, 0, used)
	b.waiting -= size
	b.out++
	q.sent = time.Now()
	b.newest = q.sent
	// A request that waits is that of a load, which counts in work too. So this is never
	// the first one after a Wait.
	b.work.Go(func() { b.run(q, size) })
}

func (b *batcher[V]) run(q *query[V], size int) {
	err := errGone // stands if the source ends this goroutine
	defer func() {
		if errors.Is(err, errGone) {
			err = unavailable(b.src.name, errGone)
		}
		b.finish(q, err)
	}()
	q.merge(size)
	_, err = read(q.ctx, b.src, q.parts[0].request.shard, func(ctx context.Context) (struct{}, error) {
		clear(q.values)
		return struct{}{}, b.fetch(ctx, q.ids, q.values)
	})
}

// merge puts the ids of all parts together, each once: two requests have the same id when
// a write came between them.
func (q *query[V]) merge(size int) {
	if len(q.parts) == 1 {
		p := &q.parts[0]
		q.ids = p.request.ids[p.from : p.from+p.n]
		q.values = p.request.values[p.from : p.from+p.n]
		return
	}
	q.ids = make([]int64, 0, size)
	q.at = make([]int, 0, size)
	seen := make(map[int64]int, size)
	for _, p := range q.parts {
		for _, id := range p.request.ids[p.from : p.from+p.n] {
			at, ok := seen[id]
			if !ok {
				at = len(q.ids)
				seen[id] = at
				q.ids = append(q.ids, id)
			}
			q.at = append(q.at, at)
		}
	}
	q.values = make([]V, len(q.ids))
}

// finish hands the answers out, or the failure, and sends what has gathered.
func (b *batcher[V]) finish(q *query[V], err error) {
	if err == nil && q.at != nil {
		next := 0
		for _, p := range q.parts {
			for i := range p.n {
				p.request.values[p.from+i] = q.values[q.at[next]]
				next++
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range q.parts {
		r := p.request
		if r.open == 0 {
			continue // another part of it has failed
		}
		r.open -= p.n
		if err != nil {
			r.err, r.open = err, 0
			b.drop(r)
		}
		if r.open == 0 {
			close(r.done)
		}
	}
	q.cancel(nil)
	b.out--
	if took := time.Since(q.sent); err == nil && b.pace == 0 {
		b.pace = took
	} else if err == nil {
		b.pace += (took - b.pace) / paceWeight
	}
	b.advance()
}
