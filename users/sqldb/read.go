package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"pinion/users"
)

const (
	selectRows = `SELECT id, name, email, phone, avatar, status, city_id, last_login_at, created_at, updated_at
FROM users`
	selectAttributes = `SELECT user_id, "key", value FROM user_attributes`
	selectMembers    = `SELECT user_id, level, points FROM members`
	selectAddress    = `SELECT coalesce(a.address, '')
FROM users u LEFT JOIN addresses a ON a.user_id = u.id WHERE u.id = ?`
)

// Users implements users.Rows.
func (db *DB) Users(ctx context.Context, ids []int64) ([]users.User, error) {
	found := make([]users.User, 0, len(ids))
	var (
		kept                                      words
		name, email, phone, avatar                sql.RawBytes
		id, status, city, login, created, updated number
	)
	columns := []any{&id, &name, &email, &phone, &avatar, &status, &city, &login, &created, &updated}
	err := db.rows.each(ctx, ids, func(rows *sql.Rows) error {
		if err := rows.Scan(columns...); err != nil {
			return err
		}
		u := users.User{
			ID: id.int64, Name: kept.keep(name), Email: kept.keep(email), Phone: kept.keep(phone), Avatar: kept.keep(avatar),
			Status: int(status.int64), CityID: city.int64,
			CreatedAt: fromMicros(created.int64), UpdatedAt: fromMicros(updated.int64),
		}
		if login.valid {
			u.LastLoginAt = fromMicros(login.int64)
		}
		found = append(found, u)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read %d users: %w", len(ids), err)
	}
	return found, nil
}

// Attributes implements users.AttributeSource.
func (db *DB) Attributes(ctx context.Context, ids []int64) (map[int64][]users.Attribute, error) {
	found := make(map[int64][]users.Attribute, len(ids))
	err := db.attributes.each(ctx, ids, func(rows *sql.Rows) error {
		var (
			id int64
			a  users.Attribute
		)
		if err := rows.Scan(&id, &a.Key, &a.Value); err != nil {
			return err
		}
		found[id] = append(found[id], a)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read attributes of %d users: %w", len(ids), err)
	}
	return found, nil
}

// Members implements users.MemberSource.
func (db *DB) Members(ctx context.Context, ids []int64) (map[int64]users.Member, error) {
	found := make(map[int64]users.Member, len(ids))
	err := db.members.each(ctx, ids, func(rows *sql.Rows) error {
		var (
			id int64
			m  users.Member
		)
		if err := rows.Scan(&id, &m.Level, &m.Points); err != nil {
			return err
		}
		found[id] = m
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read members of %d users: %w", len(ids), err)
	}
	return found, nil
}

// Address implements users.Rows.
func (db *DB) Address(ctx context.Context, id int64) (string, error) {
	address, err := db.readAddress(ctx, id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("address of user %d: %w", id, users.ErrNotFound)
	}
	if err != nil {
		return "", fmt.Errorf("read address of user %d: %w", id, cause(ctx, err))
	}
	return address, nil
}

func (db *DB) readAddress(ctx context.Context, id int64) (address string, err error) {
	rows, err := db.address.QueryContext(ctx, id)
	if err != nil {
		return "", err
	}
	defer rows.Close() //nolint:errcheck // Err says whether the row was read
	if rows.Next() {
		err = rows.Scan(&address)
	} else if err = rows.Err(); err == nil {
		err = sql.ErrNoRows
	}
	return address, err
}

func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }
