package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"pinion/internal/config"
	"pinion/internal/stats"
	"pinion/users"
	"pinion/users/members"
	"pinion/users/rediscache"
	"pinion/users/sqldb"
)

// checkSources refuses names of sources that are wrong whatever answers to them.
func checkSources(cfg *config.Config) error {
	if err := sqldb.CheckDSN(cfg.DB); err != nil {
		return cfg.Wrong("db", err)
	}
	if cfg.Redis != "" {
		if err := rediscache.CheckURL(cfg.Redis); err != nil {
			return cfg.Wrong("redis", err)
		}
	}
	if cfg.Members != "" {
		if _, err := members.ParseURL(cfg.Members); err != nil {
			return cfg.Wrong("members", err)
		}
	}
	return nil
}

// sources are what users are joined from.
type sources struct {
	db      *sqldb.DB
	redis   *rediscache.Cache // nil: attributes are in db, and there is no shared cache
	members *members.Client   // nil: members are in db

	dbConns int // to a server; 0: what package sqldb takes for SQLite

	users *users.Service // once it is joined
	stop  func()         // ends the tracking of redis
}

// open connects to what cfg names. of is how many processes share its limits. After an
// error, close lets go of what was opened.
func (s *sources) open(ctx context.Context, cfg *config.Config, of int, reg *stats.Registry, log *slog.Logger) (err error) {
	s.dbConns = dbConns(cfg, of)
	s.db, err = sqldb.Open(ctx, sqldb.Options{
		DSN: cfg.DB, MaxConns: s.dbConns, Timeout: cfg.DBTimeout,
		Peers: of > 1, AttributesElsewhere: cfg.Redis != "",
	})
	if err != nil {
		return err
	}
	if cfg.Redis != "" {
		s.redis, err = rediscache.Open(ctx, rediscache.Options{
			URL: cfg.Redis, Timeout: cfg.RedisTimeout, Log: log, Stats: reg,
			OnVoid:     func(id int64) { s.users.Forget(id) },
			OnFlush:    func() { s.users.Flush() },
			OnTracking: func(up bool) { s.users.SetCoherent(up) },
		})
		if err != nil {
			return err
		}
	}
	if cfg.Members != "" {
		s.members, err = members.New(members.Options{
			BaseURL: cfg.Members, Timeout: cfg.MembersTimeout, MaxConns: users.DefaultInFlight,
		})
	}
	return err
}

// dbConns is how many connections this one of so many processes has to a database
// server: its share of -db-conns or, by default, of four a CPU, from 8 to 64.
func dbConns(cfg *config.Config, of int) int {
	conns := cfg.DBConns
	if conns == 0 && sqldb.OnServer(cfg.DB) {
		conns = min(max(8, 4*of*runtime.GOMAXPROCS(0)), 64)
	}
	if conns == 0 {
		return 0
	}
	return max(1, conns/of)
}

// fill makes demo users up if they were asked for and the database is empty.
func (s *sources) fill(ctx context.Context, n int, log *slog.Logger) error {
	if n == 0 {
		return nil
	}
	used, err := s.db.Used(ctx)
	if err != nil {
		return err
	}
	if !used && s.redis != nil { // or users would be there, and their attributes never
		if _, err := s.redis.Attributes(ctx, []int64{1}); err != nil {
			return fmt.Errorf("make users up: %w", err)
		}
	}
	start, told := time.Now(), time.Now()
	filled, err := s.db.Fill(ctx, n, func(done, total int) {
		if time.Since(told) > time.Second {
			told = time.Now()
			log.Info("making users up", "done", done, "of", total)
		}
	})
	if err == nil && filled && s.redis != nil {
		err = s.fillAttributes(ctx, n)
	}
	switch {
	case err != nil:
		return err
	case filled:
		log.Info("users made up", "count", n, "took", time.Since(start).Round(time.Millisecond))
	default:
		log.Info("the database has users already; none were made up")
	}
	return nil
}

// fillAttributes stores the attributes of the made-up users in Redis. Many at the same
// time share its round trips.
func (s *sources) fillAttributes(ctx context.Context, n int) error {
	const workers = 64
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := make(chan users.User)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for u := range todo {
				if err := s.redis.PutAttributes(ctx, u.ID, u.Attributes); err != nil {
					cancel(fmt.Errorf("store the attributes of made-up users: %w", err))
				}
			}
		})
	}
	for u := range sqldb.DemoUsers(n) {
		if ctx.Err() != nil {
			break
		}
		if len(u.Attributes) > 0 {
			todo <- u
		}
	}
	close(todo)
	wg.Wait()
	return context.Cause(ctx)
}

// join makes the service, which the callers of the sources have in common.
func (s *sources) join(c users.Config) *users.Service {
	c.Rows, c.Attributes, c.Members = s.db, s.db, s.db
	if s.members != nil {
		c.Members = s.members
	}
	if s.redis != nil {
		c.Attributes, c.AttributeWriter = s.redis, s.redis
		c.Shared, c.Voids = s.redis, s.db
	}
	s.users = users.NewService(c)
	if s.redis != nil {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.redis.Run(ctx)
		}()
		s.stop = func() {
			cancel()
			<-done
		}
	}
	return s.users
}

// close ends the service, then what it asked.
func (s *sources) close() error {
	if s.stop != nil {
		s.stop()
	}
	if s.users != nil {
		s.users.Close()
	}
	if s.members != nil {
		s.members.Close()
	}
	if s.redis != nil {
		s.redis.Close()
	}
	if s.db == nil {
		return nil
	}
	return s.db.Close()
}
