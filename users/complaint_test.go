package users_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pinion/users"
)

// Why a part is missing is told, but not a thousand times.
func TestMissingPartsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDB(t)
		sample(t, db, 200)
		g := newGate(db)
		g.onMembers = func(context.Context, func() (map[int64]users.Member, error)) (map[int64]users.Member, error) {
			return nil, errors.New("id 19 is missing")
		}
		var log bytes.Buffer
		cfg := g.config()
		cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		s := newService(t, cfg)
		for id := int64(1); id <= 100; id++ {
			mustLoad(t, s, id)
		}
		const line = `source=members error="id 19 is missing"`
		if n := strings.Count(log.String(), line); n != 1 {
			t.Errorf("%d lines in a moment, want 1:\n%s", n, &log)
		}
		time.Sleep(5 * time.Second)
		for id := int64(101); id <= 200; id++ {
			mustLoad(t, s, id)
		}
		if n := strings.Count(log.String(), line); n != 2 {
			t.Errorf("%d lines after a while, want 2:\n%s", n, &log)
		}
	})
}
