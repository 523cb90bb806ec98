package sqldb

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"pinion/users"
)

const (
	// keyLifetime is how long the key of a create is remembered.
	keyLifetime = 24 * time.Hour
	// keyGrace keeps an expired key from being removed under a create that looks at it.
	keyGrace = time.Hour
)

const (
	selectKey = `SELECT content, user_id, created_at FROM idempotency_keys WHERE digest = ?`
	updateKey = `UPDATE idempotency_keys SET content = ?, user_id = ?, created_at = ? WHERE digest = ?`
)

// errRepeated ends the transaction of a create that was done before.
var errRepeated = errors.New("created before")

// key is what is stored of a create that may be repeated.
type key struct {
	digest  []byte
	content []byte
}

// newKey returns nil for a user without a key.
func newKey(u *users.NewUser) *key {
	if u.Key == "" {
		return nil
	}
	digest := sha256.Sum256([]byte(u.Key))
	return &key{digest: digest[:], content: contentDigest(u)}
}

// contentDigest is the same for two users that a client could not tell apart: attributes
// have no order.
func contentDigest(u *users.NewUser) []byte {
	attrs := slices.Clone(u.Attributes)
	slices.SortFunc(attrs, func(a, b users.Attribute) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value))
	})
	// Every text goes with its length, so that no two different users run into one.
	var data []byte
	text := func(s string) { data = append(binary.AppendUvarint(data, uint64(len(s))), s...) }
	text(u.Name)
	text(u.Email)
	text(u.Phone)
	text(u.Avatar)
	data = binary.AppendVarint(data, int64(u.Status))
	data = binary.AppendVarint(data, u.CityID)
	text(u.Address)
	for _, a := range attrs {
		text(a.Key)
		text(a.Value)
	}
	digest := sha256.Sum256(data)
	return digest[:]
}

// claim takes the key for this transaction; others with the same key wait for its end.
// A key that was settled before is errRepeated with the id of its user, or
// users.ErrKeyReused.
func (t *tx) claim(ctx context.Context, k *key, now int64) (id int64, err error) {
	if _, err := t.exec(ctx, t.dialect.claimKey, k.digest, k.content, now); err != nil {
		return 0, err
	}
	var (
		content []byte
		created int64
	)
	err = t.queryRow(ctx, selectKey+t.dialect.forUpdate, k.digest).Scan(&content, &id, &created)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, errAgain // it was too old, and removed just now
	case err != nil:
		return 0, err
	case id == 0, created < now-keyLifetime.Microseconds():
		return 0, nil
	case !slices.Equal(content, k.content):
		return 0, users.ErrKeyReused
	}
	return id, errRepeated
}

// settle writes down whom the key has created.
func (t *tx) settle(ctx context.Context, k *key, id, now int64) error {
	return t.execOne(ctx, updateKey, k.content, id, now, k.digest)
}

// cleanKeys removes expired keys in the background, if nobody did for a while.
func (db *DB) cleanKeys(now int64) {
	before := now - (keyLifetime + keyGrace).Microseconds()
	db.oldKeys.start(now, func(ctx context.Context) (n int64, err error) {
		err = db.inTx(ctx, func(t *tx) error {
			n, err = t.exec(ctx, db.dialect.deleteKeys, before, cleanAtMost)
			return err
		})
		return n, err
	})
}
