package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
)

// user is a user as the API shows one.
type user struct {
	ID          int64             `json:"id"`
	Name        string            `json:"name"`
	Email       string            `json:"email"`
	Phone       string            `json:"phone"`
	Avatar      string            `json:"avatar"`
	Status      int               `json:"status"`
	CityID      int64             `json:"city_id"`
	LastLoginAt *time.Time        `json:"last_login_at"`
	CreatedAt   time.Time         `json:"created_at"`
	UpdatedAt   time.Time         `json:"updated_at"`
	Attributes  map[string]string `json:"attributes"`
	Member      *member           `json:"member"`
}

type member struct {
	Level  string `json:"level"`
	Points int64  `json:"points"`
}

type answer struct {
	Users   []*user `json:"users"`
	Missing []int64 `json:"missing"`
}

const (
	maxIDs         = 256
	requestTimeout = 5 * time.Second
)

// getUsers answers GET /api/users?ids=1,2,3.
func (s *store) getUsers(c *gin.Context) {
	ids, err := parseIDs(c.Query("ids"))
	if err != nil {
		c.String(http.StatusBadRequest, "%v", err)
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), requestTimeout)
	defer cancel()
	found, err := s.join(ctx, ids)
	if err != nil {
		_ = c.Error(err) // for a middleware that logs
		c.String(http.StatusServiceUnavailable, "a source did not answer")
		return
	}
	a := answer{Users: []*user{}, Missing: []int64{}}
	for _, id := range ids {
		if u := found[id]; u != nil {
			a.Users = append(a.Users, u)
		} else {
			a.Missing = append(a.Missing, id)
		}
	}
	c.PureJSON(http.StatusOK, a) // as JSON, but < > & are left as they are
}

// join asks one source after another.
func (s *store) join(ctx context.Context, ids []int64) (map[int64]*user, error) {
	found, err := s.rows(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("rows: %w", err)
	}
	if len(found) == 0 {
		return found, nil
	}
	if err := s.addAttributes(ctx, found); err != nil {
		return nil, fmt.Errorf("attributes: %w", err)
	}
	if err := s.addMembers(ctx, found); err != nil {
		return nil, fmt.Errorf("members: %w", err)
	}
	return found, nil
}

// parseIDs reads a list of ids. A repeated one is answered once.
func parseIDs(text string) ([]int64, error) {
	parts := strings.Split(text, ",")
	if len(parts) > maxIDs {
		return nil, fmt.Errorf("at most %d ids", maxIDs)
	}
	ids := make([]int64, 0, len(parts))
	seen := make(map[int64]bool, len(parts))
	for _, part := range parts {
		id, err := strconv.ParseInt(part, 10, 64)
		if err != nil || id <= 0 {
			return nil, errors.New("want ids=1,2,3")
		}
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, nil
}
