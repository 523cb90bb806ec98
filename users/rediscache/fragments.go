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
	keys := newTexts(len(ids), len(ids)*(len(fragmentPrefix)+maxDigits))
	for _, id := range ids {
		keys.key(fragmentPrefix, id)
	}
	results, err := c.do(ctx, c.client.B().Mget().Key(keys.strings()...).Build())
	if err != nil {
		return err
	}
	values, err := results[0].ToArray()
	if err == nil && len(values) != len(ids) {
		err = fmt.Errorf("%w: %d values for %d keys", ErrProtocol, len(values), len(ids))
	}
	if err != nil {
		return fmt.Errorf("redis: look up users: %w", err)
	}
	var misses []int
	incarnation := c.incarnation.Load()
	for i, id := range ids {
		json, ok := value(id, incarnation, &values[i])
		switch {
		case !ok:
			misses = append(misses, i)
		case len(json) == 0:
			found[i].State = users.SharedMissing
		default:
			// Nobody else sees this memory: rueidis allocates each string by itself, and
			// keeps it only in its own cache, which is off.
			found[i] = users.Shared{State: users.SharedUser, JSON: json}
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
	// One token for all: a lease is told from later ones for the same id.
	lease := newLease(c.incarnation.Load())
	keys := newTexts(len(misses), len(misses)*(len(leasePrefix)+maxDigits))
	for _, at := range misses {
		keys.key(leasePrefix, ids[at])
	}
	e := execution{keys: keys.strings(), args: []string{token(lease), milliseconds(leaseTTL)}}
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
			found[at].Lease = lease
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
	incarnation := c.incarnation.Load()
	granted := make([]*users.SharedEntry, 0, len(entries))
	for i := range entries {
		if grantedUnder(entries[i].Lease, incarnation) {
			granted = append(granted, &entries[i])
		}
	}
	if len(granted) == 0 {
		return nil
	}
	results, err := c.run(ctx, c.scripts.store, storing(granted, incarnation))
	if err != nil {
		return err
	}
	if err := results[0].Error(); err != nil {
		return fmt.Errorf("redis: store %d users: %w", len(entries), err)
	}
	return nil
}

// storing is a run of storeText.
func storing(entries []*users.SharedEntry, incarnation uint32) execution {
	n, size := len(entries), 0
	for _, e := range entries {
		size += storedSize + len(e.JSON)
	}
	all := newTexts((storeKeys+storeArgs)*n, size)
	for _, e := range entries {
		all.key(leasePrefix, e.ID)
		all.key(fragmentPrefix, e.ID)
	}
	for _, e := range entries {
		ttl := fragmentTTL + rand.N(fragmentSpread)
		if len(e.JSON) == 0 {
			ttl = missingTTL + rand.N(missingSpread)
		}
		all.number(uint64(e.Lease))
		all.value(e.ID, incarnation, e.JSON)
		all.number(uint64(ttl.Milliseconds()))
	}
	parts := all.strings()
	return execution{keys: parts[:storeKeys*n], args: parts[storeKeys*n:]}
}

// storedSize is what an entry takes in a run of storeText beside its JSON, at most.
const storedSize = len(leasePrefix) + len(fragmentPrefix) + headerSize + 4*maxDigits

// Void implements users.SharedCache. After an error it may have been done or not; doing
// it again does no harm.
func (c *Cache) Void(ctx context.Context, id int64) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	e := execution{
		keys: []string{key(fragmentPrefix, id), key(leasePrefix, id), key(voidPrefix, id)},
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
