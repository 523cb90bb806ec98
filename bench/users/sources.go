package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"pinion/internal/testserver"
	"pinion/users"
	"pinion/users/members/service"
	"pinion/users/sqldb"
)

// sources is where both services get their users from.
type sources struct {
	sqlURL, redisURL, membersURL string

	sql        *sql.DB
	redis      *redis.Client
	members    *service.Server
	attributes map[int64][]users.Attribute
}

// startSources starts the servers and fills them with n made-up users.
func startSources(ctx context.Context, c *cleanup, n int) (*sources, error) {
	// 256 MiB hold everything, so no read waits for a disk.
	maria, err := testserver.StartMariaDB("--innodb-buffer-pool-size=256M")
	if err != nil {
		return nil, err
	}
	c.add(maria.Close)
	cache, err := testserver.StartRedis()
	if err != nil {
		return nil, err
	}
	c.add(cache.Close)
	s := &sources{
		sqlURL: maria.DSN(), redisURL: cache.DSN(),
		redis: redis.NewClient(&redis.Options{Addr: cache.Addr()}),
	}
	c.add(func() { _ = s.redis.Close() })
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net, cfg.Addr = testserver.User, testserver.Password, "tcp", maria.Addr()
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	s.sql = sql.OpenDB(connector)
	c.add(func() { _ = s.sql.Close() })

	db, err := sqldb.Open(ctx, sqldb.Options{DSN: s.sqlURL})
	if err != nil {
		return nil, err
	}
	defer db.Close() //nolint:errcheck // what was written has been committed
	if _, err := db.Fill(ctx, n, nil); err != nil {
		return nil, err
	}
	known := map[int64]users.Member{}
	s.attributes = map[int64][]users.Attribute{}
	const most = 256
	for first := 1; first <= n; first += most {
		ids := make([]int64, 0, most)
		for id := first; id < first+most; id++ {
			ids = append(ids, int64(id))
		}
		m, err := db.Members(ctx, ids)
		if err != nil {
			return nil, err
		}
		a, err := db.Attributes(ctx, ids)
		if err != nil {
			return nil, err
		}
		maps.Copy(known, m)
		maps.Copy(s.attributes, a)
	}
	return s, s.serveMembers(c, known)
}

// serveMembers starts the member service, in this process.
func (s *sources) serveMembers(c *cleanup, known map[int64]users.Member) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.membersURL = "http://" + ln.Addr().String()
	s.members = service.New(func(id int64) (users.Member, bool) {
		m, ok := known[id]
		return m, ok
	})
	go s.members.Serve(ln) //nolint:errcheck // requests would fail, and be counted
	c.add(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = s.members.Shutdown(ctx)
	})
	return nil
}

// reset empties Redis, and gives it the attributes back, which it is the source of.
func (s *sources) reset(ctx context.Context) error {
	if err := s.redis.FlushAll(ctx).Err(); err != nil {
		return err
	}
	pipe := s.redis.Pipeline()
	for id, attrs := range s.attributes {
		values := make([]any, 0, 2*len(attrs))
		for _, a := range attrs {
			values = append(values, a.Key, a.Value)
		}
		pipe.HSet(ctx, "user:attr:"+strconv.FormatInt(id, 10), values...)
		if pipe.Len() == 1000 {
			if _, err := pipe.Exec(ctx); err != nil {
				return err
			}
		}
	}
	_, err := pipe.Exec(ctx)
	return err
}

// asked is what the sources have been asked so far.
type asked struct{ sql, redis, members int64 }

func (s *sources) asked(ctx context.Context) (a asked, err error) {
	var name string
	// Of all clients. Counts the runs of prepared statements too.
	if err := s.sql.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Com_select'").Scan(&name, &a.sql); err != nil {
		return a, fmt.Errorf("count of SQL queries: %w", err)
	}
	info, err := s.redis.Info(ctx, "stats").Result()
	if err != nil {
		return a, fmt.Errorf("count of Redis commands: %w", err)
	}
	if a.redis, err = redisCommands(info); err != nil {
		return a, err
	}
	requests, _ := s.members.Requests()
	a.members = int64(requests)
	return a, nil
}

// redisCommands reads the answer to INFO stats.
func redisCommands(info string) (int64, error) {
	m := regexp.MustCompile(`(?m)^total_commands_processed:(\d+)\r?$`).FindStringSubmatch(info)
	if m == nil {
		return 0, errors.New("count of Redis commands: INFO does not say")
	}
	return strconv.ParseInt(m[1], 10, 64)
}

// versions names the servers.
func (s *sources) versions(ctx context.Context) string {
	var maria string
	if err := s.sql.QueryRowContext(ctx, "SELECT VERSION()").Scan(&maria); err != nil {
		maria = err.Error()
	}
	maria, _, _ = strings.Cut(maria, "-")
	found := regexp.MustCompile(`redis_version:(\S+)`).FindStringSubmatch(s.redis.Info(ctx, "server").Val())
	if found == nil {
		found = []string{"", "of unknown version"}
	}
	return "MariaDB " + maria + ", Redis " + found[1]
}
