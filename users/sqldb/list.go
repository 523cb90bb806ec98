package sqldb

import (
	"context"
	"database/sql"
	"math/bits"
	"strings"
	"sync"
)

// maxList is the longest list of one query; longer ones are cut. SQLite allows 32,766
// parameters, but each prepared size costs memory on every connection.
const maxList = 1 << (listClasses - 1)

// listClasses is the number of prepared list lengths: 1, 2, 4, ... 1024.
const listClasses = 11

// listQuery is a SELECT whose condition is "column IN (list of ids)". It is prepared for
// lists of powers of two; the rest of a list repeats its last id, which finds nothing
// twice.
type listQuery struct {
	pool   *sql.DB
	head   string // SELECT ... FROM ...
	column string

	mu    sync.Mutex
	stmts [listClasses]*sql.Stmt // by log2 of the length, prepared at first use
}

// classOf is the smallest class that holds n.
func classOf(n int) int { return bits.Len(uint(n - 1)) }

func (q *listQuery) stmt(ctx context.Context, class int) (*sql.Stmt, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stmts[class] == nil {
		stmt, err := q.pool.PrepareContext(ctx, q.text(1<<class))
		if err != nil {
			return nil, err
		}
		q.stmts[class] = stmt
	}
	return q.stmts[class], nil
}

func (q *listQuery) text(n int) string {
	return q.head + " WHERE " + q.column + " IN (?" + strings.Repeat(",?", n-1) + ")"
}

// each calls scan for every row that the ids find. scan must not run other queries: an
// in-memory database has one connection.
func (q *listQuery) each(ctx context.Context, ids []int64, scan func(*sql.Rows) error) error {
	for len(ids) > 0 {
		n := min(len(ids), maxList)
		if err := q.eachOf(ctx, ids[:n], scan); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

func (q *listQuery) eachOf(ctx context.Context, ids []int64, scan func(*sql.Rows) error) error {
	class := classOf(len(ids))
	stmt, err := q.stmt(ctx, class)
	if err != nil {
		return err
	}
	args := make([]any, 1<<class)
	for i := range args {
		args[i] = ids[min(i, len(ids)-1)]
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // Err says whether the rows were read
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
