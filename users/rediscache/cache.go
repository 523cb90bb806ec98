package rediscache

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math/bits"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"pinion/internal/stats"
	"pinion/users"
)

// Defaults of Options.
const (
	DefaultTimeout     = 500 * time.Millisecond
	DefaultDialTimeout = 500 * time.Millisecond
)

// maxCalls is the largest number of calls in flight; a call is up to maxBatch commands.
const maxCalls = 256

// Options say where Redis is, and who is to hear of changes. Only URL is required.
type Options struct {
	// URL is one that CheckURL takes.
	URL string
	// TLS is used for rediss://, and must not be changed afterwards; nil: what the system
	// trusts. ServerName is taken from URL if it is empty.
	TLS *tls.Config
	// Timeout ends a call, whatever its context allows. Zero or less means
	// DefaultTimeout.
	Timeout time.Duration
	// DialTimeout ends each half of making a connection: the dial, and the first commands. Zero or less means DefaultDialTimeout.
	DialTimeout time.Duration
	// Conns is the number of connections that commands share, rounded down to a power of
	// two, at most 256; tracking has one more. Zero or less means one per CPU in use, at
	// most 4.
	Conns int

	// OnVoid is called for each id that an instance, this one too, has removed; OnFlush
	// when Redis was emptied; OnTracking when it becomes known whether OnVoid and OnFlush
	// hear of everything. Only Run calls them. OnVoid and OnFlush must return soon: they
	// hold up what comes after them. Calls of OnTracking come one after another. nil: not
	// interested.
	OnVoid     func(id int64)
	OnFlush    func()
	OnTracking func(up bool)

	// Log hears of Redis being lost and found; nil: nobody does.
	Log *slog.Logger
	// Stats takes l1_staleness_seconds; nil: a registry nobody reads.
	Stats *stats.Registry
}

func (opts *Options) setDefaults() {
	if opts.Timeout <= 0 {
		opts.Timeout = DefaultTimeout
	}
	if opts.DialTimeout <= 0 {
		opts.DialTimeout = DefaultDialTimeout
	}
	if opts.OnVoid == nil {
		opts.OnVoid = func(int64) {}
	}
	if opts.OnFlush == nil {
		opts.OnFlush = func() {}
	}
	if opts.OnTracking == nil {
		opts.OnTracking = func(bool) {}
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Stats == nil {
		opts.Stats = stats.NewRegistry(1)
	}
}

// Cache is what this instance shares with others through Redis. It is safe for
// concurrent use. The caller must Run it to have tracking, and Close it.
type Cache struct {
	opts    Options
	timeout time.Duration
	dialer  *dialer
	client  rueidis.Client
	scripts scripts
	slots   chan struct{} // one for each call that rueidis has not returned from

	// incarnation is told from the run of Redis that tracking is on with; 0 before.
	incarnation atomic.Uint32

	// down is set while Redis is known not to answer. Only Run finds out.
	down atomic.Bool

	staleness *stats.Histogram
	samples   chan int64 // ids whose removal was just heard of

	closing context.Context
	close   context.CancelFunc
	mu      sync.Mutex // Run does not begin while Close waits
	runs    sync.WaitGroup
}

var (
	_ users.SharedCache     = (*Cache)(nil)
	_ users.AttributeSource = (*Cache)(nil)
	_ users.AttributeWriter = (*Cache)(nil)
)

// Open returns a Cache. It tries to connect for up to DialTimeout, but Redis may also
// come later. It fails if the URL is wrong (ErrURL), or if Redis says that what is in it
// is (ErrRefused).
func Open(ctx context.Context, opts Options) (*Cache, error) {
	e, err := parseURL(opts.URL)
	if err != nil {
		return nil, err
	}
	opts.setDefaults()
	c := &Cache{
		opts:    opts,
		timeout: opts.Timeout,
		dialer:  newDialer(e, opts.TLS, opts.DialTimeout),
		scripts: newScripts(),
		slots:   make(chan struct{}, maxCalls),
		samples: make(chan int64, 1),
		staleness: opts.Stats.Histogram("l1_staleness_seconds",
			"Time from the removal of a user in Redis to its removal here, of a sample.",
			[]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}).With(),
	}
	c.closing, c.close = context.WithCancel(context.Background())
	err = c.connect(ctx)
	switch {
	case err == nil:
		return c, nil
	case refused(err):
		c.Close()
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	case ctx.Err() != nil || c.client == nil:
		c.Close()
		return nil, err
	}
	c.down.Store(true)
	c.opts.Log.Warn("redis does not answer", "err", err)
	return c, nil
}

// connect makes the client for commands. It does so even if Redis does not answer: the
// client then dials again with the next command.
func (c *Cache) connect(ctx context.Context) error {
	opt := c.option()
	opt.DisableCache = true
	// Without this a lone call has ConnWriteTimeout to be done, and ends the connection
	// if it is not.
	opt.AlwaysPipelining = true
	opt.PipelineMultiplex = multiplex(c.opts.Conns)
	// The client sends a PING where nothing was received for this long, and gives the
	// connection up if no answer comes within ConnWriteTimeout.
	opt.Dialer.KeepAlive = pingTimeout
	opt.ConnWriteTimeout = pingTimeout
	var first atomic.Bool
	opt.DialCtxFn = func(dctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
		if first.CompareAndSwap(false, true) {
			dctx = ctx // rueidis has no context for the first one
		}
		return c.dialer.dial(dctx, false, nil)
	}
	client, err := rueidis.NewClient(opt)
	c.client = client
	return err
}

// option is what both kinds of clients have in common.
func (c *Cache) option() rueidis.ClientOption {
	e := &c.dialer.endpoint
	return rueidis.ClientOption{
		InitAddress:         []string{e.addr},
		Username:            e.username,
		Password:            e.password,
		SelectDB:            e.db,
		ClientName:          "pinion",
		ForceSingleClient:   true,
		DisableRetry:        true,
		Dialer:              net.Dialer{Timeout: c.opts.DialTimeout}, // of the first commands; the dial has its own
		ReadBufferEachConn:  64 << 10,
		WriteBufferEachConn: 64 << 10,
	}
}

// multiplex is the exponent that rueidis wants.
func multiplex(conns int) int {
	switch {
	case conns <= 0:
		return 0 // the default of rueidis, as Options describes it
	case conns == 1:
		return -1
	}
	return min(bits.Len(uint(conns))-1, rueidis.MaxPipelineMultiplex)
}

// Close ends Run and all calls, and closes the connections.
func (c *Cache) Close() {
	c.mu.Lock()
	c.close()
	c.mu.Unlock()
	c.runs.Wait()
	if c.client != nil {
		// The client waits for replies, which may never come.
		impatient := time.AfterFunc(pingTimeout, c.dialer.closeAll)
		if c.down.Load() {
			c.dialer.closeAll()
		}
		c.client.Close()
		impatient.Stop()
	}
	c.dialer.end()
}

// Ready returns ErrDown while Redis is known not to answer. It asks nobody.
func (c *Cache) Ready(context.Context) error {
	if c.down.Load() {
		return ErrDown
	}
	return nil
}

// do sends commands in one go and returns their replies, of which each may be an error
// of Redis. err is for when there are no replies.
//
// rueidis is called on a goroutine of its own, and without a context: it takes one, but
// does not look at it while it dials or while its queue is full, and it keeps a goroutine
// for each caller that left. So the slot of a call is free again when Redis has replied
// or the connection is gone, and what a Redis that hangs can pile up is maxCalls.
func (c *Cache) do(ctx context.Context, commands ...rueidis.Completed) ([]rueidis.RedisResult, error) {
	inTime, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	select {
	case c.slots <- struct{}{}:
	case <-inTime.Done():
		return nil, c.failure(ctx, inTime, inTime.Err())
	case <-c.closing.Done():
		return nil, ErrClosed
	}
	done := make(chan []rueidis.RedisResult, 1)
	go func() {
		defer func() { <-c.slots }()
		done <- c.client.DoMulti(context.Background(), commands...)
	}()
	select {
	case results := <-done:
		for i := range results {
			if err := results[i].NonRedisError(); err != nil {
				return nil, c.failure(ctx, inTime, err)
			}
		}
		return results, nil
	case <-inTime.Done():
		return nil, c.failure(ctx, inTime, inTime.Err())
	}
}

// usable is asked before commands are made: a call that cannot succeed costs nothing.
func (c *Cache) usable(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case c.closing.Err() != nil:
		return ErrClosed
	case c.down.Load():
		return ErrDown
	}
	return nil
}
