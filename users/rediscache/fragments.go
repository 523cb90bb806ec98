package rediscache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"pinion/users"
)

// Times to live. A random part keeps what was stored together from ending together.
const (
	fragmentTTL, fragmentSpread = 10 * time.Minute, 2 * time.Minute
	missingTTL, missingSpread   = 30 * time.Second, 6 * time.Second
	leaseTTL                    = 10 * time.Second
	voidTTL                     = time.Minute
)

// Prefixes of keys; the id follows in decimal.
const (
	fragmentPrefix  = "user:frag:"
	missingPrefix   = "user:none:"
	leasePrefix     = "user:lease:"
	voidPrefix      = "user:void:"
	attributePrefix = "user:attr:"
)

// maxBatch is the largest number of ids in one go.
const maxBatch = 256

func key(prefix string, id int64) string { return prefix + strconv.FormatInt(id, 10) }

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Lookup implements users.SharedCache.
func (c *Cache) Lookup(ctx context.Context, ids []int64) ([]users.Shared, error) {
	found := make([]users.Shared, len(ids))
	for i := 0; i < len(ids); i += maxBatch {
		end := min(i+maxBatch, len(ids))
		if err := c.lookup(ctx, ids[i:end], found[i:end]); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (c *Cache) lookup(ctx context.Context, ids []int64, found []users.Shared) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	keys := make([]string, 0, 2*len(ids))
	for _, prefix := range []string{fragmentPrefix, missingPrefix} {
		for _, id := range ids {
			keys = append(keys, key(prefix, id))
		}
	}
	results, err := c.do(ctx, c.client.B().Mget().Key(keys...).Build())
	if err != nil {
		return err
	}
	values, err := results[0].ToArray()
	if err == nil && len(values) != len(keys) {
		err = fmt.Errorf("%w: %d values for %d keys", ErrProtocol, len(values), len(keys))
	}
	if err != nil {
		return fmt.Errorf("redis: look up users: %w", err)
	}
	var misses []int
	incarnation := c.incarnation.Load()
	for i, id := range ids {
		if json, ok := value(id, incarnation, &values[i]); ok && len(json) > 0 {
			// Nobody else sees this memory: rueidis allocates each string by itself, and
			// keeps it only in its own cache, which is off.
			found[i] = users.Shared{State: users.SharedUser, JSON: json}
		} else if json, ok := value(id, incarnation, &values[len(ids)+i]); ok && len(json) == 0 {
			found[i].State = users.SharedMissing
		} else {
			misses = append(misses, i)
		}
	}
	c.lease(ctx, ids, found, misses)
	return nil
}

func value(id int64, incarnation uint32, m *rueidis.RedisMessage) (json []byte, ok bool) {
	b, err := m.AsBytes()
	if err != nil { // nil, or no string
		return nil, false
	}
	return decode(id, incarnation, b)
}

// lease asks for the leases of the misses. Without one a miss is still an answer, so no
// failure here takes away what was found.
func (c *Cache) lease(ctx context.Context, ids []int64, found []users.Shared, misses []int) {
	if len(misses) == 0 {
		return
	}
	tokens := make([]users.Lease, len(misses))
	e := execution{
		keys: make([]string, len(misses)),
		args: append(make([]string, 0, 1+len(misses)), milliseconds(leaseTTL)),
	}
	incarnation := c.incarnation.Load()
	for i, at := range misses {
		tokens[i] = newLease(incarnation)
		e.keys[i] = key(leasePrefix, ids[at])
		e.args = append(e.args, token(tokens[i]))
	}
	results, err := c.run(ctx, c.scripts.lease, e)
	if err != nil {
		return
	}
	granted, err := results[0].ToString()
	if err != nil || len(granted) != len(misses) {
		return
	}
	for i, at := range misses {
		if granted[i] == '1' {
			found[at].Lease = tokens[i]
		}
	}
}

// newLease makes a lease that says under which incarnation it was granted.
func newLease(incarnation uint32) users.Lease {
	return users.Lease(uint64(incarnation)<<32 | uint64(1+rand.Uint32N(1<<32-1)))
}

// grantedUnder reports whether l is a lease of that incarnation. One from before a restart
// may have come back with it, although a removal had ended it.
func grantedUnder(l users.Lease, incarnation uint32) bool {
	return l != 0 && uint32(l>>32) == incarnation
}

func token(l users.Lease) string { return strconv.FormatUint(uint64(l), 10) }

// Store implements users.SharedCache. If some entries fail, the others are kept, and the
// error is that of the first.
func (c *Cache) Store(ctx context.Context, entries []users.SharedEntry) error {
	for part := range slices.Chunk(entries, maxBatch) {
		if err := c.store(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cache) store(ctx context.Context, entries []users.SharedEntry) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	var all execution
	incarnation := c.incarnation.Load()
	for i := range entries {
		if grantedUnder(entries[i].Lease, incarnation) {
			all.store(&entries[i], incarnation)
		}
	}
	if len(all.keys) == 0 {
		return nil
	}
	results, err := c.run(ctx, c.scripts.store, all)
	if err != nil {
		return err
	}
	if err := results[0].Error(); err != nil {
		return fmt.Errorf("redis: store %d users: %w", len(entries), err)
	}
	return nil
}

// store adds an entry to a run of storeText.
func (x *execution) store(e *users.SharedEntry, incarnation uint32) {
	lease, put, other := key(leasePrefix, e.ID), key(fragmentPrefix, e.ID), key(missingPrefix, e.ID)
	ttl := fragmentTTL + rand.N(fragmentSpread)
	if len(e.JSON) == 0 {
		put, other = other, put
		ttl = missingTTL + rand.N(missingSpread)
	}
	x.keys = append(x.keys, lease, put, other)
	x.args = append(x.args, token(e.Lease), rueidis.BinaryString(encode(e.ID, incarnation, e.JSON)), milliseconds(ttl))
}

// Void implements users.SharedCache. After an error it may have been done or not; doing
// it again does no harm.
func (c *Cache) Void(ctx context.Context, id int64) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	e := execution{
		keys: []string{key(fragmentPrefix, id), key(missingPrefix, id), key(leasePrefix, id), key(voidPrefix, id)},
		args: []string{milliseconds(voidTTL)},
	}
	s := c.scripts.void.Load()
	results, err := c.run(ctx, s, e)
	if err == nil && doesNotCompile(results[0].Error()) {
		s = newScript(voidText)
		c.scripts.void.Store(s)
		results, err = c.run(ctx, s, e)
	}
	if err != nil {
		return err
	}
	if err := results[0].Error(); err != nil {
		return fmt.Errorf("redis: void user %d: %w", id, err)
	}
	return nil
}
