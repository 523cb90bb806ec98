package sqldb

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"pinion/users"
)

const (
	// Status is written out: the planner then knows it, and it is part of both indexes.
	// A user that never logged in has NULL, which no comparison finds.
	selectActive = `SELECT id, last_login_at FROM users
WHERE status = 1 AND last_login_at >= ?
ORDER BY last_login_at DESC, id DESC LIMIT ?`

	selectActiveInCity = `SELECT id, last_login_at FROM users
WHERE status = 1 AND city_id = ? AND last_login_at >= ?
ORDER BY last_login_at DESC, id DESC LIMIT ?`

	// The same for a list of cities that is one parameter.
	selectActiveInArray = `SELECT active.id, active.last_login_at FROM unnest(CAST(? AS BIGINT[])) AS city
CROSS JOIN LATERAL (
	SELECT id, last_login_at FROM users
	WHERE status = 1 AND city_id = city AND last_login_at >= ?
	ORDER BY last_login_at DESC, id DESC LIMIT ?
) AS active
ORDER BY active.last_login_at DESC, active.id DESC LIMIT ?`

	// noCity fills up a list of cities: none has this id.
	noCity = -1

	// cityClasses is the number of prepared numbers of cities: 1, 2, 4, ... 64. SQLite
	// refuses more than 500 parts of a UNION.
	cityClasses = 7
	maxCities   = 1 << (cityClasses - 1)
)

// activeQuery finds the ids of active users. With cities it takes the first entries of
// each city's part of the index and merges them, so the work is bounded by cities times
// limit, however many users there are. One scan under "city_id IN (...)" would read and
// sort all active users of these cities.
type activeQuery struct {
	db *DB

	mu     sync.Mutex
	all    queryer
	byCity [cityClasses]queryer // by log2 of the number of cities
}

func (q *activeQuery) query(ctx context.Context, cities int) (queryer, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	stmt, text := &q.all, selectActive
	if cities > 0 && q.db.dialect.arrays {
		stmt, text = &q.byCity[0], selectActiveInArray
	} else if cities > 0 {
		class := classOf(cities)
		stmt, text = &q.byCity[class], activeInCities(1<<class)
	}
	if *stmt == nil {
		made, err := q.db.statement(ctx, text)
		if err != nil {
			return nil, err
		}
		*stmt = made
	}
	return *stmt, nil
}

// activeInCities is the text for n cities. Each part is a subquery of its own, because
// LIMIT binds to a whole UNION otherwise. The unary plus keeps SQLite's planner from
// pushing the last ORDER BY into the parts, each of which it would then sort again.
func activeInCities(n int) string {
	const part = "SELECT * FROM (" + selectActiveInCity + ") AS city"
	return "SELECT id, last_login_at FROM (" + part + strings.Repeat(" UNION ALL "+part, n-1) +
		") AS cities ORDER BY +last_login_at DESC, +id DESC LIMIT ?"
}

// login is an entry of the index.
type login struct{ id, at int64 }

// ActiveIDs implements users.Rows.
func (db *DB) ActiveIDs(ctx context.Context, q users.ActiveQuery) ([]int64, error) {
	if q.Limit <= 0 {
		return nil, nil
	}
	since := int64(math.MinInt64)
	if !q.Since.IsZero() {
		since = q.Since.UnixMicro()
	}
	var (
		found  []login
		err    error
		cities = slices.Compact(slices.Sorted(slices.Values(q.Cities)))
	)
	if len(cities) == 0 {
		found, err = db.active.find(ctx, nil, since, q.Limit)
	}
	for chunk := range slices.Chunk(cities, maxCities) {
		var part []login
		if part, err = db.active.find(ctx, chunk, since, q.Limit); err != nil {
			break
		}
		found = append(found, part...)
	}
	if err != nil {
		return nil, fmt.Errorf("find active users: %w", cause(ctx, err))
	}
	return newest(found, len(cities) > maxCities, q.Limit), nil
}

// newest returns the ids of found. Those of several queries are merged: a user that
// moved from one city to another between two queries may be in both.
func newest(found []login, merge bool, limit int) []int64 {
	if merge {
		slices.SortFunc(found, func(a, b login) int {
			return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.id, a.id))
		})
	}
	ids := make([]int64, 0, min(limit, len(found)))
	for _, l := range found {
		if len(ids) == limit {
			break
		}
		if !merge || !slices.Contains(ids, l.id) {
			ids = append(ids, l.id)
		}
	}
	return ids
}

func (q *activeQuery) find(ctx context.Context, cities []int64, since int64, limit int) ([]login, error) {
	stmt, err := q.query(ctx, len(cities))
	if err != nil {
		return nil, err
	}
	var args []any
	switch {
	case len(cities) == 0:
		args = []any{since, limit}
	case q.db.dialect.arrays:
		args = []any{cities, since, limit, limit}
	default:
		for i := range 1 << classOf(len(cities)) {
			city := int64(noCity)
			if i < len(cities) {
				city = cities[i]
			}
			args = append(args, city, since, limit)
		}
		args = append(args, limit)
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err says whether the rows were read
	var found []login
	for rows.Next() {
		var l login
		if err := rows.Scan(&l.id, &l.at); err != nil {
			return nil, err
		}
		found = append(found, l)
	}
	return found, rows.Err()
}
