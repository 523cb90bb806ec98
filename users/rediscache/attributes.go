package rediscache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"pinion/users"
)

// Limits of a hash that is read. They are far above what users.NewUser may have: such a
// hash was written by somebody else, and would be in every answer and in every cache.
const (
	maxFields    = 1000
	maxHashBytes = 256 << 10 // of all names and values
)

// errHashSize says that a hash is over one of the limits.
var errHashSize = fmt.Errorf("more than %d attributes, or than %d bytes of them", maxFields, maxHashBytes)

// Attributes implements users.AttributeSource. Users whose key holds no hash, or one of
// more than 1000 fields or 256 KiB, are in a *users.PartError.
func (c *Cache) Attributes(ctx context.Context, ids []int64) (map[int64][]users.Attribute, error) {
	all := make(map[int64][]users.Attribute, len(ids))
	var bad users.PartError
	for part := range slices.Chunk(ids, maxBatch) {
		if err := c.attributes(ctx, part, all, &bad); err != nil {
			return nil, err
		}
	}
	if len(bad.IDs) > 0 {
		return all, &bad
	}
	return all, nil
}

// attributes adds what it finds to all, and the users that have none that can be used to
// bad.
func (c *Cache) attributes(ctx context.Context, ids []int64, all map[int64][]users.Attribute, bad *users.PartError) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	commands := make([]rueidis.Completed, len(ids))
	for i, id := range ids {
		commands[i] = c.client.B().Hgetall().Key(key(attributePrefix, id)).Build()
	}
	results, err := c.do(ctx, commands...)
	if err != nil {
		return err
	}
	for i, id := range ids {
		attrs, err := hash(results[i])
		if err != nil {
			wrapped := fmt.Errorf("redis: attributes of user %d: %w", id, err)
			if !unusable(err) {
				return wrapped
			}
			if bad.IDs = append(bad.IDs, id); bad.Err == nil {
				bad.Err = wrapped
			}
			continue
		}
		if len(attrs) > 0 {
			all[id] = attrs
		}
	}
	return nil
}

// unusable reports whether err of hash is about what one key holds. Other errors of Redis, such as
// LOADING, would be the same for every key.
func unusable(err error) bool {
	reply, ok := rueidis.IsRedisErr(err)
	return ok && strings.HasPrefix(reply.Error(), "WRONGTYPE") || errors.Is(err, errHashSize)
}

func hash(r rueidis.RedisResult) ([]users.Attribute, error) {
	fields, err := r.AsMap()
	if err != nil {
		return nil, err
	}
	if len(fields) > maxFields {
		return nil, errHashSize
	}
	attrs := make([]users.Attribute, 0, len(fields))
	size := 0
	for name, field := range fields {
		text, err := field.ToString()
		if err != nil {
			return nil, err
		}
		if size += len(name) + len(text); size > maxHashBytes {
			return nil, errHashSize
		}
		attrs = append(attrs, users.Attribute{Key: name, Value: text})
	}
	return attrs, nil
}

// PutAttributes implements users.AttributeWriter: the hash is replaced as a whole or not
// at all. After an error that is not one of Redis it may have been either.
func (c *Cache) PutAttributes(ctx context.Context, id int64, attrs []users.Attribute) error {
	if len(attrs) == 0 {
		return c.DropAttributes(ctx, id)
	}
	if err := c.usable(ctx); err != nil {
		return err
	}
	k := key(attributePrefix, id)
	fields := c.client.B().Hset().Key(k).FieldValue()
	for _, a := range attrs {
		fields = fields.FieldValue(a.Key, a.Value)
	}
	results, err := c.do(ctx,
		c.client.B().Multi().Build(),
		c.client.B().Del().Key(k).Build(),
		fields.Build(),
		c.client.B().Exec().Build())
	if err != nil {
		return err
	}
	// What is refused when it is queued makes EXEC do nothing; its own error says why.
	for i := range results {
		if err := results[i].Error(); err != nil {
			return fmt.Errorf("redis: put attributes of user %d: %w", id, err)
		}
	}
	done, err := results[len(results)-1].ToArray()
	for i := 0; err == nil && i < len(done); i++ {
		err = done[i].Error()
	}
	if err != nil {
		return fmt.Errorf("redis: put attributes of user %d: %w", id, err)
	}
	return nil
}

// AddAttributes implements users.AttributeWriter. A key that holds no hash is an error,
// and is left as it is.
func (c *Cache) AddAttributes(ctx context.Context, id int64, attrs []users.Attribute) error {
	if len(attrs) == 0 {
		return nil
	}
	if err := c.usable(ctx); err != nil {
		return err
	}
	e := execution{keys: []string{key(attributePrefix, id)}, args: make([]string, 0, 2*len(attrs))}
	for _, a := range attrs {
		e.args = append(e.args, a.Key, a.Value)
	}
	results, err := c.run(ctx, c.scripts.add, e)
	if err != nil {
		return err
	}
	if err := results[0].Error(); err != nil {
		return fmt.Errorf("redis: add attributes of user %d: %w", id, err)
	}
	return nil
}

// DropAttributes implements users.AttributeWriter.
func (c *Cache) DropAttributes(ctx context.Context, id int64) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	results, err := c.do(ctx, c.client.B().Del().Key(key(attributePrefix, id)).Build())
	if err != nil {
		return err
	}
	if err := results[0].Error(); err != nil {
		return fmt.Errorf("redis: drop attributes of user %d: %w", id, err)
	}
	return nil
}
