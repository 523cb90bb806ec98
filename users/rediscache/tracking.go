package rediscache

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"pinion/codec"
)

const (
	pingInterval = 250 * time.Millisecond
	pingTimeout  = 500 * time.Millisecond

	firstRetry = 25 * time.Millisecond
	lastRetry  = 250 * time.Millisecond
)

// errLost says that the connection for tracking ended.
var errLost = errors.New("connection lost")

// Run keeps tracking on and calls the On functions of Options until ctx ends or Close is
// called. Its first and its last call is OnTracking(false). It must not be called twice.
func (c *Cache) Run(ctx context.Context) {
	c.mu.Lock()
	if c.closing.Err() != nil {
		c.mu.Unlock()
		return
	}
	c.runs.Add(1)
	c.mu.Unlock()
	defer c.runs.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.closing, cancel)()

	sampling := make(chan struct{})
	go func() {
		defer close(sampling)
		c.sample(ctx)
	}()
	defer func() { <-sampling }()
	defer cancel()

	c.opts.OnTracking(false)
	var reported string // what the log has heard last
	for wait := firstRetry; ctx.Err() == nil; {
		up, err := c.track(ctx)
		if ctx.Err() != nil {
			return
		}
		if up {
			wait, reported = firstRetry, ""
		}
		if text := err.Error(); text != reported {
			c.opts.Log.Warn("redis: tracking is off", "err", err)
			reported = text
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait + rand.N(wait)):
		}
		wait = min(2*wait, lastRetry)
	}
}

// track makes one connection and watches it until it is lost. It reports whether tracking
// was on in between; it is off when track returns.
func (c *Cache) track(ctx context.Context) (up bool, err error) {
	s, err := c.openSession(ctx)
	if err != nil {
		// Redis may refuse this connection, as when it has too many clients, and still
		// serve the others.
		if c.answers(ctx) {
			c.find()
		} else if ctx.Err() == nil {
			c.lose()
		}
		return false, err
	}
	defer s.close()
	c.find()
	c.opts.Log.Info("redis: tracking is on")
	c.opts.OnTracking(true)
	err = s.watch(ctx)
	c.opts.OnTracking(false)
	if !errors.Is(err, errLost) && ctx.Err() == nil { // it hangs
		c.lose()
	}
	return true, err
}

// answers asks Redis on a connection for commands.
func (c *Cache) answers(ctx context.Context) bool {
	inTime, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return c.client.Do(inTime, c.client.B().Ping().Build()).NonRedisError() == nil
}

// find lets calls try again.
func (c *Cache) find() {
	if c.down.Swap(false) {
		c.opts.Log.Info("redis answers again")
	}
}

// lose makes calls fail at once, those that wait too.
func (c *Cache) lose() {
	c.down.Store(true)
	c.dialer.closeAll()
}

// session is one connection with tracking.
type session struct {
	cache  *Cache
	client rueidis.Client
	lost   chan struct{} // closed when nothing more can be read
	lose   func()        // closes it
	dialed atomic.Bool
	unbind func() bool // the connection from Run's context
}

// openSession connects, and returns when tracking is confirmed.
func (c *Cache) openSession(ctx context.Context) (*session, error) {
	s := &session{cache: c, lost: make(chan struct{}), unbind: func() bool { return false }}
	s.lose = sync.OnceFunc(func() { close(s.lost) })
	opt := c.option()
	opt.ClientTrackingOptions = []string{"BCAST", "PREFIX", voidPrefix}
	opt.OnInvalidations = s.invalidated
	opt.PipelineMultiplex = -1 // one connection
	opt.CacheSizeEachConn = 1  // which nobody uses
	opt.RingScaleEachConn = 4
	opt.Dialer.KeepAlive = time.Hour // watch sends the PINGs
	opt.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
		if !s.dialed.CompareAndSwap(false, true) {
			return nil, errLost
		}
		nc, err := c.dialer.dial(ctx, true, s.lose)
		if err == nil { // ctx is to end a handshake that hangs, too
			s.unbind = context.AfterFunc(ctx, func() { _ = nc.Close() })
		}
		return nc, err
	}
	client, err := rueidis.NewClient(opt)
	s.client = client
	if err == nil {
		err = s.ping(ctx)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	incarnation, err := s.incarnation(ctx)
	if err != nil {
		s.close()
		return nil, err
	}
	c.incarnation.Store(incarnation)
	return s, nil
}

// incarnation is another number each time that Redis starts. What a Redis has read from
// its disk may be from before removals that it had not written there; so fragments and
// leases are good for one incarnation. It is 0 where Redis does not tell. Without any
// answer it is unknown, which is an error: with 0 this instance would use what a Redis that
// tells all others has brought back.
func (s *session) incarnation(ctx context.Context) (uint32, error) {
	inTime, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	info, err := s.client.Do(inTime, s.client.B().Info().Section("server").Build()).ToString()
	if _, refused := rueidis.IsRedisErr(err); err != nil && !refused {
		return 0, fmt.Errorf("ask for the run_id: %w", err)
	}
	_, rest, ok := strings.Cut(info, "\nrun_id:")
	if err != nil || !ok {
		s.cache.opts.Log.Warn("redis does not tell its run_id: fragments that a restart brings back may be old", "err", err)
		return 0, nil
	}
	id, _, _ := strings.Cut(rest, "\r")
	return max(1, crc32.ChecksumIEEE([]byte(id))), nil
}

func (s *session) close() {
	s.unbind()
	s.lose() // what is pushed from here on is nobody's business
	if s.client != nil {
		s.client.Close()
	}
}

// watch returns why the connection can no longer be trusted: errLost if it is gone.
func (s *session) watch(ctx context.Context) error {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		// The first one at once: who was told that tracking is on may have taken long.
		if err := s.ping(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.lost:
			return errLost
		case <-tick.C:
		}
	}
}

// ping returns nil if the connection works. All that was pushed before the answer has
// then been handled.
func (s *session) ping(ctx context.Context) error {
	inTime, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.client.Do(inTime, s.client.B().Ping().Build()).Error() }()
	select {
	case err := <-done:
		select {
		case <-s.lost:
			return errLost
		default:
		}
		if err != nil && inTime.Err() != nil {
			return fmt.Errorf("no answer to a PING within %v", pingTimeout)
		}
		return err
	case <-s.lost:
		return errLost
	}
}

// invalidated is called with the keys of a push, and with nil when Redis was emptied. At
// the end of a connection rueidis calls it with nil, too.
func (s *session) invalidated(keys []rueidis.RedisMessage) {
	select {
	case <-s.lost:
		return
	default:
	}
	if keys == nil {
		s.cache.opts.OnFlush()
		return
	}
	for i := range keys {
		text, err := keys[i].ToString()
		digits, ours := strings.CutPrefix(text, voidPrefix)
		if err != nil || !ours {
			s.cache.opts.OnFlush() // whatever it was, it may have been for us
			continue
		}
		id, ok := codec.ParseID([]byte(digits))
		if !ok {
			continue // a key that Void did not write
		}
		s.cache.opts.OnVoid(id)
		select {
		case s.cache.samples <- id:
		default:
		}
	}
}
