package sqldb

import (
	"context"
	"fmt"

	"pinion/users"
)

const (
	insertVoid  = `INSERT INTO cache_voids (user_id, created_at) VALUES (?, ?)`
	selectVoids = `SELECT seq, user_id FROM cache_voids ORDER BY seq LIMIT ?`
	deleteVoids = `DELETE FROM cache_voids WHERE `
)

// AddVoid implements users.VoidLog. After an error the id may be stored all the same.
func (db *DB) AddVoid(ctx context.Context, id int64) error {
	if _, err := db.write.ExecContext(ctx, db.dialect.bind(insertVoid), id, db.now().UnixMicro()); err != nil {
		return fmt.Errorf("store removal of user %d from the shared cache: %w", id, cause(ctx, err))
	}
	return nil
}

// Voids implements users.VoidLog.
func (db *DB) Voids(ctx context.Context, limit int) ([]users.Void, error) {
	if limit <= 0 {
		return nil, nil
	}
	found, err := db.readVoids(ctx, limit)
	if err != nil {
		return nil, fmt.Errorf("read removals from the shared cache: %w", cause(ctx, err))
	}
	return found, nil
}

func (db *DB) readVoids(ctx context.Context, limit int) (found []users.Void, err error) {
	rows, err := db.read.QueryContext(ctx, db.dialect.bind(selectVoids), limit)
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
