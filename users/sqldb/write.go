package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"pinion/users"
)

const (
	insertUser = `INSERT INTO users
(name, email, phone, avatar, status, city_id, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
	insertAttributes = `INSERT INTO user_attributes (user_id, "key", value) VALUES `
	deleteAttributes = `DELETE FROM user_attributes WHERE user_id = ?`
	// The rest goes with it: ON DELETE CASCADE.
	deleteUser = `DELETE FROM users WHERE id = ?`
)

// Create implements users.Rows. It returns the id beside users.ErrUnknownOutcome too, if
// one was given out.
func (db *DB) Create(ctx context.Context, u users.NewUser) (id int64, err error) {
	now := db.now().UnixMicro()
	key := newKey(&u)
	err = db.inTx(ctx, func(t *tx) (err error) {
		id = 0
		if key != nil {
			if id, err = t.claim(ctx, key, now); err != nil {
				return err
			}
		}
		id, err = t.insert(ctx, insertUser, u.Name, u.Email, u.Phone, u.Avatar, u.Status, u.CityID, now, now)
		if err != nil {
			return err
		}
		if err := db.putAttributes(ctx, t, id, u.Attributes); err != nil {
			return err
		}
		if u.Address != "" {
			if _, err := t.exec(ctx, db.dialect.upsertAddress, id, u.Address); err != nil {
				return err
			}
		}
		if key != nil {
			return t.settle(ctx, key, id, now)
		}
		return nil
	})
	if key != nil {
		db.cleanKeys(now)
	}
	switch {
	case err == nil, errors.Is(err, errRepeated):
		return id, nil
	case errors.Is(err, users.ErrUnknownOutcome):
		return id, fmt.Errorf("create user %d: %w", id, err)
	}
	return 0, fmt.Errorf("create user: %w", err)
}

// Update implements users.Rows.
func (db *DB) Update(ctx context.Context, id int64, p users.Patch) error {
	err := db.inTx(ctx, func(t *tx) error {
		text, args := db.updateUser(id, &p, db.now())
		if err := t.execOne(ctx, text, args...); err != nil {
			return err
		}
		if p.Attributes != nil && !db.leave {
			if _, err := t.exec(ctx, deleteAttributes, id); err != nil {
				return err
			}
			if err := db.putAttributes(ctx, t, id, *p.Attributes); err != nil {
				return err
			}
		}
		if p.Address != nil {
			if _, err := t.exec(ctx, db.dialect.upsertAddress, id, *p.Address); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("update user %d: %w", id, err)
	}
	return nil
}

// updateUser sets the columns that the patch names, and updated_at whatever it names:
// attributes and address are part of the user.
func (db *DB) updateUser(id int64, p *users.Patch, now time.Time) (text string, args []any) {
	var set []string
	column := func(name string, value any) {
		set = append(set, name+" = ?")
		args = append(args, value)
	}
	if p.Name != nil {
		column("name", *p.Name)
	}
	if p.Email != nil {
		column("email", *p.Email)
	}
	if p.Phone != nil {
		column("phone", *p.Phone)
	}
	if p.Avatar != nil {
		column("avatar", *p.Avatar)
	}
	if p.Status != nil {
		column("status", *p.Status)
	}
	if p.CityID != nil {
		column("city_id", *p.CityID)
	}
	if p.LastLoginAt != nil {
		column("last_login_at", sql.NullInt64{Int64: p.LastLoginAt.UnixMicro(), Valid: !p.LastLoginAt.IsZero()})
	}
	// The clock may stand still or go back; updated_at must not.
	set = append(set, "updated_at = "+db.dialect.greatest+"(?, updated_at + 1)")
	args = append(args, now.UnixMicro(), id)
	return "UPDATE users SET " + strings.Join(set, ", ") + " WHERE id = ?", args
}

// Delete implements users.Rows.
func (db *DB) Delete(ctx context.Context, id int64) error {
	err := db.inTx(ctx, func(t *tx) error { return t.execOne(ctx, deleteUser, id) })
	if err != nil {
		return fmt.Errorf("delete user %d: %w", id, err)
	}
	return nil
}

// execOne runs a statement that must find its user.
func (t *tx) execOne(ctx context.Context, text string, args ...any) error {
	n, err := t.exec(ctx, text, args...)
	if err == nil && n == 0 {
		err = users.ErrNotFound
	}
	return err
}

// putAttributes stores attributes of a user that has none, in one statement.
func (db *DB) putAttributes(ctx context.Context, t *tx, id int64, attrs []users.Attribute) error {
	if db.leave || len(attrs) == 0 {
		return nil
	}
	args := make([]any, 0, 3*len(attrs))
	for _, a := range attrs {
		args = append(args, id, a.Key, a.Value)
	}
	_, err := t.exec(ctx, insertAttributes+tuples(len(attrs), 3), args...)
	return err
}

// tuples is the parameters of n rows.
func tuples(n, columns int) string {
	row := "(?" + strings.Repeat(",?", columns-1) + ")"
	return row + strings.Repeat(","+row, n-1)
}
