package users

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"
)

// parts are the answers of the three sources for one batch.
type parts struct {
	rows       []User
	attributes map[int64][]Attribute
	members    map[int64]Member
	degraded   Degraded
}

// gather asks all sources at the same time and waits for all of them. Only the rows
// can fail it.
func (s *Service) gather(ctx context.Context, shard uint64, ids []int64) (*parts, error) {
	var (
		p                         parts
		wg                        sync.WaitGroup
		attributesErr, membersErr error
	)
	// Without rows nobody needs the other answers. All three calls have returned when
	// this one has, even if the rows end this goroutine.
	ctx, cancel := context.WithCancel(ctx)
	defer wg.Wait()
	defer cancel()
	if s.attributes != nil {
		attributesErr = errGone // stands if the call does not return
		wg.Go(func() {
			p.attributes, attributesErr = ask(ctx, &s.attributesSource, shard,
				func(ctx context.Context) (map[int64][]Attribute, error) { return s.attributes.Attributes(ctx, ids) })
		})
	}
	if s.members != nil {
		membersErr = errGone
		wg.Go(func() {
			p.members, membersErr = ask(ctx, &s.membersSource, shard,
				func(ctx context.Context) (map[int64]Member, error) { return s.members.Members(ctx, ids) })
		})
	}
	var err error
	p.rows, err = ask(ctx, &s.sqlSource, shard,
		func(ctx context.Context) ([]User, error) { return s.rows.Users(ctx, ids) })
	if err != nil {
		cancel()
	}
	wg.Wait()
	if err != nil {
		return nil, err
	}
	if attributesErr != nil {
		p.degraded |= DegradedAttributes
	}
	if membersErr != nil {
		p.degraded |= DegradedMember
	}
	return &p, nil
}

// fill loads the users of l's calls and encodes each once.
func (s *Service) fill(ctx context.Context, l *load) error {
	ids := make([]int64, len(l.calls))
	calls := make(map[int64]*call, len(l.calls))
	for i := range l.calls {
		ids[i] = l.calls[i].id
		calls[ids[i]] = &l.calls[i]
		l.calls[i].fragment = s.missing
	}
	p, err := s.gather(ctx, l.shard, ids)
	if err != nil {
		return err
	}
	scratch := s.encoding.Get()
	defer s.encoding.Put(scratch)
	for i := range p.rows {
		u := &p.rows[i]
		c := calls[u.ID]
		if c == nil {
			continue // not asked for
		}
		u.Attributes = sortAttributes(p.attributes[u.ID])
		if m, ok := p.members[u.ID]; ok {
			u.Member = &m
		}
		scratch.B = appendUser(scratch.B[:0], u, p.degraded)
		// A copy of the right size: the cache counts and keeps every byte of it.
		c.fragment = newFragment(bytes.Clone(scratch.B), p.degraded)
	}
	return nil
}

func sortAttributes(attrs []Attribute) []Attribute {
	slices.SortFunc(attrs, func(a, b Attribute) int { return cmp.Compare(a.Key, b.Key) })
	return attrs
}
