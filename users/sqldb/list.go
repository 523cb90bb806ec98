package sqldb

import (
	"context"
	"database/sql"
	"math/bits"
	"strconv"
	"sync"
)

const (
	// listClasses is the number of list lengths that are asked with: 1, 2, 4, ... 512.
	// Each length is a text of its own, prepared by SQLite on every connection and counted
	// separately in the statistics of a server.
	listClasses = 10
	// maxList is the longest list of one query; longer ones are cut. MariaDB turns lists of
	// 1,000 and more into a temporary table.
	maxList = 1 << (listClasses - 1)
)

// listQuery is a SELECT whose condition is that a column is in a list of ids.
type listQuery struct {
	db     *DB
	head   string // SELECT ... FROM ...
	column string

	mu     sync.Mutex
	byList [listClasses]queryer // by log2 of the length, made at first use
}

// classOf is the smallest class that holds n.
func classOf(n int) int { return bits.Len(uint(n - 1)) }

func (q *listQuery) query(ctx context.Context, class int) (queryer, error) {
	if q.db.dialect.arrays {
		class = 0 // one text for all
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.byList[class] == nil {
		stmt, err := q.db.statement(ctx, q.text(1<<class))
		if err != nil {
			return nil, err
		}
		q.byList[class] = stmt
	}
	return q.byList[class], nil
}

func (q *listQuery) text(n int) string {
	return q.head + " WHERE " + q.db.dialect.inList(q.column, n)
}

// each calls scan for every row that the ids find. scan must not run other queries: an
// in-memory database has one connection.
func (q *listQuery) each(ctx context.Context, ids []int64, scan func(*sql.Rows) error) error {
	for len(ids) > 0 {
		n := min(len(ids), maxList)
		if err := q.eachOf(ctx, ids[:n], scan); err != nil {
			return cause(ctx, err)
		}
		ids = ids[n:]
	}
	return nil
}

func (q *listQuery) eachOf(ctx context.Context, ids []int64, scan func(*sql.Rows) error) error {
	rows, err := q.run(ctx, ids)
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

func (q *listQuery) run(ctx context.Context, ids []int64) (*sql.Rows, error) {
	if q.db.dialect.written {
		return q.db.read.QueryContext(ctx, q.written(ids))
	}
	class := classOf(len(ids))
	stmt, err := q.query(ctx, class)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, q.db.dialect.listArgs(ids, 1<<class)...)
}

// written is the text with the ids in it.
func (q *listQuery) written(ids []int64) string {
	const where, in, digits = " WHERE ", " IN (", 20
	text := make([]byte, 0, len(q.head)+len(where)+len(q.column)+len(in)+len(ids)*(digits+1))
	text = append(append(append(append(text, q.head...), where...), q.column...), in...)
	for i, id := range ids {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, id, 10)
	}
	return string(append(text, ')'))
}
