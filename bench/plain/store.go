package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// store asks the three sources.
type store struct {
	db      *sql.DB
	redis   *redis.Client
	http    *http.Client
	members string
}

// rows reads users from SQL, all of a request with one query.
func (s *store) rows(ctx context.Context, ids []int64) (map[int64]*user, error) {
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	query := `SELECT id, name, email, phone, avatar, status, city_id, last_login_at, created_at, updated_at
FROM users WHERE id IN (?` + strings.Repeat(", ?", len(ids)-1) + `)`
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err says whether the rows were read
	found := make(map[int64]*user, len(ids))
	for rows.Next() {
		var (
			u                user
			login            sql.NullInt64
			created, updated int64 // unix microseconds
		)
		err := rows.Scan(&u.ID, &u.Name, &u.Email, &u.Phone, &u.Avatar, &u.Status, &u.CityID, &login, &created, &updated)
		if err != nil {
			return nil, err
		}
		if login.Valid {
			t := time.UnixMicro(login.Int64).UTC()
			u.LastLoginAt = &t
		}
		u.CreatedAt, u.UpdatedAt = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC()
		found[u.ID] = &u
	}
	return found, rows.Err()
}

// addAttributes reads the hash of each user, all of a request in one pipeline.
func (s *store) addAttributes(ctx context.Context, users map[int64]*user) error {
	pipe := s.redis.Pipeline()
	cmds := make(map[int64]*redis.MapStringStringCmd, len(users))
	for id := range users {
		cmds[id] = pipe.HGetAll(ctx, "user:attr:"+strconv.FormatInt(id, 10))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	for id, cmd := range cmds {
		users[id].Attributes = cmd.Val()
	}
	return nil
}

// addMembers asks the member service once for all users of a request.
func (s *store) addMembers(ctx context.Context, users map[int64]*user) error {
	ids := make([]string, 0, len(users))
	for id := range users {
		ids = append(ids, strconv.FormatInt(id, 10))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.members+"/members?ids="+strings.Join(ids, ","), nil)
	if err != nil {
		return err
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", resp.Status)
	}
	var found struct {
		Members []struct {
			ID int64 `json:"id"`
			member
		} `json:"members"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&found); err != nil {
		return err
	}
	for _, m := range found.Members {
		if u := users[m.ID]; u != nil {
			u.Member = &m.member
		}
	}
	return nil
}
