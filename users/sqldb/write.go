package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"pinion/users"
)

const (
	insertUser = `INSERT INTO users
(name, email, phone, avatar, status, city_id, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
	insertAttribute  = `INSERT INTO user_attributes (user_id, key, value) VALUES (?, ?, ?)`
	deleteAttributes = `DELETE FROM user_attributes WHERE user_id = ?`
	upsertAddress    = `INSERT INTO addresses (user_id, address) VALUES (?, ?)
ON CONFLICT (user_id) DO UPDATE SET address = excluded.address`
	// The rest goes with it: ON DELETE CASCADE.
	deleteUser = `DELETE FROM users WHERE id = ?`
	// The clock may stand still or go back; updated_at must not.
	touchUser = `updated_at = max(?, updated_at + 1)`
)

// Create implements users.Rows.
func (db *DB) Create(ctx context.Context, u users.NewUser) (id int64, err error) {
	now := db.now().UnixMicro()
	err = inTx(ctx, db.write, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, insertUser,
			u.Name, u.Email, u.Phone, u.Avatar, u.Status, u.CityID, now, now)
		if err != nil {
			return err
		}
		if id, err = result.LastInsertId(); err != nil {
			return err
		}
		if err := putAttributes(ctx, tx, id, u.Attributes); err != nil {
			return err
		}
		if u.Address == "" {
			return nil
		}
		_, err = tx.ExecContext(ctx, upsertAddress, id, u.Address)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("create user: %w", err)
	}
	return id, nil
}

// Update implements users.Rows.
func (db *DB) Update(ctx context.Context, id int64, p users.Patch) error {
	err := inTx(ctx, db.write, func(tx *sql.Tx) error {
		text, args := updateUser(id, &p, db.now())
		if err := execOne(ctx, tx, text, args...); err != nil {
			return err
		}
		if p.Attributes != nil {
			if _, err := tx.ExecContext(ctx, deleteAttributes, id); err != nil {
				return err
			}
			if err := putAttributes(ctx, tx, id, *p.Attributes); err != nil {
				return err
			}
		}
		if p.Address != nil {
			if _, err := tx.ExecContext(ctx, upsertAddress, id, *p.Address); err != nil {
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
func updateUser(id int64, p *users.Patch, now time.Time) (text string, args []any) {
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
	set = append(set, touchUser)
	args = append(args, now.UnixMicro(), id)
	return "UPDATE users SET " + strings.Join(set, ", ") + " WHERE id = ?", args
}

// Delete implements users.Rows.
func (db *DB) Delete(ctx context.Context, id int64) error {
	err := inTx(ctx, db.write, func(tx *sql.Tx) error { return execOne(ctx, tx, deleteUser, id) })
	if err != nil {
		return fmt.Errorf("delete user %d: %w", id, err)
	}
	return nil
}

// execOne runs a statement that must find its user.
func execOne(ctx context.Context, tx *sql.Tx, text string, args ...any) error {
	result, err := tx.ExecContext(ctx, text, args...)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = users.ErrNotFound
	}
	return err
}

func putAttributes(ctx context.Context, tx *sql.Tx, id int64, attrs []users.Attribute) error {
	for _, a := range attrs {
		if _, err := tx.ExecContext(ctx, insertAttribute, id, a.Key, a.Value); err != nil {
			return err
		}
	}
	return nil
}
