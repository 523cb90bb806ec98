// Command plain is what pinion is measured against: the same users, joined the way that
// common libraries suggest, with no thought of speed and no mistakes either. gin,
// database/sql, go-redis and net/http; one source after another, for each request by
// itself; no cache.
//
// It answers GET /api/users?ids=1,2,3 like pinion. Errors are answered as text.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8081", "where to serve")
	db := flag.String("db", "", "mysql://user:password@host:port/name, with the tables of pinion")
	redisURL := flag.String("redis", "", "redis://host:port/0, with the attributes of the users")
	members := flag.String("members", "", "http://host:port of the member service")
	flag.Parse()
	if err := run(*addr, *db, *redisURL, *members); err != nil {
		log.Fatal(err)
	}
}

func run(addr, db, redisURL, members string) error {
	pool, err := openSQL(db)
	if err != nil {
		return err
	}
	defer pool.Close() //nolint:errcheck // it was only read
	options, err := redis.ParseURL(redisURL)
	if err != nil {
		return err
	}
	options.PoolSize, options.MinIdleConns = 32, 8 // the default is ten for each CPU
	client := redis.NewClient(options)
	defer client.Close() //nolint:errcheck // it was only read

	s := &store{db: pool, redis: client, http: newHTTPClient(), members: members}
	gin.SetMode(gin.ReleaseMode)
	router := gin.New() // without the logger of gin.Default: pinion logs no request either
	router.Use(gin.Recovery())
	router.GET("/api/users", s.getUsers)
	return serve(&http.Server{Addr: addr, Handler: router, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute})
}

// serve answers until SIGTERM or SIGINT.
func serve(server *http.Server) error {
	stop, restore := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer restore()
	done := make(chan error, 1)
	go func() { done <- server.ListenAndServe() }()
	select {
	case err := <-done:
		return err
	case <-stop.Done():
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return err
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// openSQL opens a pool that does not churn: as many idle connections as open ones.
func openSQL(url string) (*sql.DB, error) {
	dsn, err := mysqlDSN(url)
	if err != nil {
		return nil, err
	}
	pool, err := sql.Open("mysql", dsn)
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(32)
	pool.SetMaxIdleConns(32)
	pool.SetConnMaxLifetime(5 * time.Minute)
	return pool, nil
}

// mysqlDSN turns a URL into the driver's own notation.
func mysqlDSN(url string) (string, error) {
	rest, ok := strings.CutPrefix(url, "mysql://")
	user, place, found := strings.Cut(rest, "@")
	host, name, named := strings.Cut(place, "/")
	if !ok || !found || !named {
		return "", fmt.Errorf("-db: want mysql://user:password@host:port/name")
	}
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd, _ = strings.Cut(user, ":")
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", host, name
	cfg.InterpolateParams = true // one round trip a query instead of three
	return cfg.FormatDSN(), nil
}

// newHTTPClient keeps as many connections as there may be requests: of the default, two
// for each host, a busy service closes nearly every one it opens.
func newHTTPClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 256, 256
	return &http.Client{Transport: transport, Timeout: 2 * time.Second}
}
