package users

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// membership is what the member service knows about one id; ok: it is a member.
type membership struct {
	Member
	ok bool
}

// attributeList is what the attribute source says about one id; failed: it could not say.
type attributeList struct {
	list   []Attribute
	failed bool
}

// batchers are those of the sources that a load asks. attributes and members are nil
// when there is no such source.
type batchers struct {
	rows       *batcher[*User]
	attributes *batcher[attributeList]
	members    *batcher[membership]
}

func (s *Service) fetchRows(ctx context.Context, ids []int64, values []*User) error {
	rows, err := s.rows.Users(ctx, ids)
	if err != nil {
		return err
	}
	at := make(map[int64]int, len(ids))
	for i, id := range ids {
		at[id] = i
	}
	for i := range rows {
		if k, ok := at[rows[i].ID]; ok { // else not asked for
			values[k] = &rows[i]
		}
	}
	return nil
}

// fetchAttributes takes a PartError for an answer: what is stored wrong for a few users
// must not open the breaker, which would keep attributes from everybody and refuse writes.
// The call is then counted twice, as ok and as an error.
func (s *Service) fetchAttributes(ctx context.Context, ids []int64, values []attributeList) error {
	found, err := s.attributes.Attributes(ctx, ids)
	var part *PartError
	if err != nil {
		s.attributeless.about(ctx, err)
	}
	if err != nil && !errors.As(err, &part) {
		return err
	}
	for i, id := range ids {
		values[i].list = found[id]
		slices.SortFunc(values[i].list, func(a, b Attribute) int { return cmp.Compare(a.Key, b.Key) })
	}
	if part == nil {
		return nil
	}
	s.attributesWrites.failed.Add(0, 1) // one counter for reads and writes
	for _, id := range part.IDs {
		if i := slices.Index(ids, id); i >= 0 {
			values[i] = attributeList{failed: true}
		}
	}
	return nil
}

func (s *Service) fetchMembers(ctx context.Context, ids []int64, values []membership) error {
	found, err := s.members.Members(ctx, ids)
	if err != nil {
		s.memberless.about(ctx, err)
		return err
	}
	for i, id := range ids {
		values[i].Member, values[i].ok = found[id]
	}
	return nil
}

// errPatience ends the wait for what an answer can do without.
var errPatience = errors.New("no time to wait for it")

// optional is what a load asks of one source and can do without.
type optional[V any] struct {
	batcher *batcher[V]
	request *request[V] // nil: there is no such source
}

func askFor[V any](b *batcher[V], shard uint64, ids []int64) optional[V] {
	if b == nil {
		return optional[V]{}
	}
	return optional[V]{batcher: b, request: b.submit(shard, ids)}
}

// wait is batcher.wait that gives up when until has come.
func (o optional[V]) wait(ctx context.Context, until time.Time) error {
	if o.request == nil {
		return nil
	}
	select {
	case <-o.request.done: // most often: no timer
		return o.batcher.wait(ctx, o.request)
	default:
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-o.request.done:
	case <-ctx.Done():
	case <-timer.C:
		o.batcher.abandon(o.request)
		return errPatience
	}
	return o.batcher.wait(ctx, o.request)
}

// leave takes the request back.
func (o optional[V]) leave() {
	if o.request != nil {
		o.batcher.leave(o.request, errNoWaiters)
	}
}

// get is the answer to the id of index i, if there is one.
func (o optional[V]) get(i int, err error) (v V) {
	if o.request == nil || err != nil {
		return v
	}
	return o.request.values[i]
}

// fill answers the calls of l, from the shared cache under epoch and from the sources.
// The calls that have no fragment then have failed with the error.
func (s *Service) fill(ctx context.Context, l *load, epoch uint64) error {
	until := time.Now().Add(l.patience)
	if epoch != 0 && s.fillShared(ctx, l) {
		return nil
	}
	if ctx.Err() != nil {
		return loadError(ctx, ctx.Err())
	}
	ids := make([]int64, 0, len(l.calls))
	for i := range l.calls {
		if l.calls[i].fragment == nil {
			ids = append(ids, l.calls[i].id)
		}
	}
	if s.sqlSource.guard.open() {
		// The others need not be asked for what nobody will get.
		return s.sqlSource.refuse(ctx, l.shard, ErrBreakerOpen)
	}
	// All sources at the same time. Only the rows can fail the load.
	rows := s.batchers.rows.submit(l.shard, ids)
	attributes := askFor(s.batchers.attributes, l.shard, ids)
	members := askFor(s.batchers.members, l.shard, ids)
	if err := s.batchers.rows.wait(ctx, rows); err != nil {
		// Without rows nobody needs the other answers.
		attributes.leave()
		members.leave()
		return loadError(ctx, err)
	}
	var degraded Degraded
	attributesErr := attributes.wait(ctx, until)
	if attributesErr != nil {
		degraded |= DegradedAttributes
	}
	membersErr := members.wait(ctx, until)
	if membersErr != nil {
		degraded |= DegradedMember
	}
	scratch := s.encoding.Get()
	defer s.encoding.Put(scratch)
	n := 0
	for i := range l.calls {
		c := &l.calls[i]
		if c.fragment != nil {
			continue
		}
		k := n
		n++
		if rows.values[k] == nil {
			c.fragment = s.missing
			continue
		}
		u, lacks := *rows.values[k], degraded // the row may be shared with another load
		known := attributes.get(k, attributesErr)
		if u.Attributes = known.list; known.failed {
			lacks |= DegradedAttributes
		}
		if m := members.get(k, membersErr); m.ok {
			u.Member = &m.Member
		}
		scratch.B = appendUser(scratch.B[:0], &u, lacks)
		// A copy of the right size: the cache counts and keeps every byte of it.
		c.fragment = newFragment(bytes.Clone(scratch.B), lacks)
	}
	return nil
}

// loadError is err of a batcher for those who wait for a load that ctx is of.
func loadError(ctx context.Context, err error) error {
	if errors.Is(err, ErrUnavailable) {
		return err
	}
	return unavailable("load", context.Cause(ctx))
}
