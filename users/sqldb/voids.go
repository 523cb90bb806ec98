package sqldb

import (
	"context"
	"fmt"
	"time"

	"pinion/users"
)

// voidLifetime is how long a removal is owed. The shared cache keeps nothing for longer
// than 12 minutes; the rest is for clocks that differ.
const voidLifetime = 15 * time.Minute

const (
	insertVoid  = `INSERT INTO cache_voids (user_id, created_at) VALUES (?, ?)`
	selectVoids = `SELECT seq, user_id FROM cache_voids WHERE created_at >= ? ORDER BY seq LIMIT ?`
	// There is no index on the time, but entries get old in their order.
	selectOldVoids = `SELECT seq, user_id FROM (
	SELECT seq, user_id, created_at FROM cache_voids ORDER BY seq LIMIT ?) AS oldest WHERE created_at < ?`
	deleteVoids = `DELETE FROM cache_voids WHERE `
)

// AddVoid implements users.VoidLog. After an error the id may be stored all the same.
func (db *DB) AddVoid(ctx context.Context, id int64) error {
	if _, err := db.write.ExecContext(ctx, db.dialect.bind(insertVoid), id, db.now().UnixMicro()); err != nil {
		return fmt.Errorf("store removal of user %d from the shared cache: %w", id, cause(ctx, err))
	}
	return nil
}

// Voids implements users.VoidLog. Entries that the shared cache has outlived are left out,
// and now and then removed.
func (db *DB) Voids(ctx context.Context, limit int) ([]users.Void, error) {
	if limit <= 0 {
		return nil, nil
	}
	now := db.now().UnixMicro()
	oldest := now - voidLifetime.Microseconds()
	db.cleanVoids(now, oldest)
	found, err := db.readVoids(ctx, selectVoids, oldest, limit)
	if err != nil {
		return nil, fmt.Errorf("read removals from the shared cache: %w", cause(ctx, err))
	}
	return found, nil
}

// cleanVoids removes entries from before oldest in the background, if nobody did for a
// while. It looks first: a database that takes no writes is not asked for one each time.
func (db *DB) cleanVoids(now, oldest int64) {
	db.oldVoids.start(now, func(ctx context.Context) (int64, error) {
		old, err := db.readVoids(ctx, selectOldVoids, cleanAtMost, oldest)
		if err != nil {
			return 0, err
		}
		seqs := make([]int64, len(old))
		for i, v := range old {
			seqs[i] = v.Seq
		}
		return int64(len(seqs)), db.DropVoids(ctx, seqs)
	})
}

func (db *DB) readVoids(ctx context.Context, text string, args ...any) (found []users.Void, err error) {
	rows, err := db.read.QueryContext(ctx, db.dialect.bind(text), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err says whether the rows were read
	for rows.Next() {
		var v users.Void
		if err := rows.Scan(&v.Seq, &v.ID); err != nil {
			return nil, err
		}
		found = append(found, v)
	}
	return found, rows.Err()
}

// DropVoids implements users.VoidLog.
func (db *DB) DropVoids(ctx context.Context, seqs []int64) error {
	for len(seqs) > 0 {
		n := min(len(seqs), maxList)
		size := 1 << classOf(n)
		text := db.dialect.bind(deleteVoids + db.dialect.inList("seq", size))
		if _, err := db.write.ExecContext(ctx, text, db.dialect.listArgs(seqs[:n], size)...); err != nil {
			return fmt.Errorf("drop removals from the shared cache: %w", cause(ctx, err))
		}
		seqs = seqs[n:]
	}
	return nil
}
