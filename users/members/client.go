package members

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"pinion/codec"
	"pinion/users"
)

// Defaults of Options.
const (
	DefaultTimeout     = time.Second
	DefaultMaxConns    = 16
	DefaultIdleTimeout = 30 * time.Second
)

// Options say where the member service is and how long to wait for it. Only BaseURL is
// required.
type Options struct {
	// BaseURL is what "/members?ids=" is appended to; see ParseURL.
	BaseURL string
	// Timeout ends a request, the wait for a connection included. Zero or less means
	// DefaultTimeout.
	Timeout time.Duration
	// MaxConns is the largest number of open connections, and so of requests in flight.
	// Zero or less means DefaultMaxConns.
	MaxConns int
	// IdleTimeout is how long a connection may rest and still be used again. It should
	// be shorter than what the service allows. Zero or less means DefaultIdleTimeout.
	IdleTimeout time.Duration
	// TLS is used for https, and must not be changed afterwards; nil: what the system
	// trusts. ServerName is taken from BaseURL if it is empty.
	TLS *tls.Config
}

// Client asks one member service. It is a users.MemberSource, and safe for concurrent
// use. Close it.
type Client struct {
	timeout time.Duration
	pool    *pool
	prefix  string // of a request, up to the ids
	suffix  string // all that follows them

	decoders sync.Pool // of *codec.Decoder
}

var _ users.MemberSource = (*Client)(nil)

// New returns a client. It does not connect: the service may come later. The only
// errors are about BaseURL and match ErrURL.
func New(opts Options) (*Client, error) {
	u, err := ParseURL(opts.BaseURL)
	if err != nil {
		return nil, err
	}
	if opts.Timeout <= 0 {
		opts.Timeout = DefaultTimeout
	}
	if opts.MaxConns <= 0 {
		opts.MaxConns = DefaultMaxConns
	}
	if opts.IdleTimeout <= 0 {
		opts.IdleTimeout = DefaultIdleTimeout
	}
	return &Client{
		timeout:  opts.Timeout,
		pool:     newPool(opts.MaxConns, opts.IdleTimeout, dialer(u, opts.TLS)),
		prefix:   "GET " + strings.TrimRight(u.EscapedPath(), "/") + "/members?ids=",
		suffix:   " HTTP/1.1\r\nHost: " + u.Host + "\r\nAccept: application/json\r\nUser-Agent: pinion\r\n\r\n",
		decoders: sync.Pool{New: func() any { return new(codec.Decoder) }},
	}, nil
}

func dialer(u *url.URL, cfg *tls.Config) func(ctx context.Context) (net.Conn, error) {
	addr := address(u)
	if u.Scheme == "https" {
		d := tls.Dialer{Config: cfg}
		return func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) }
	}
	var d net.Dialer
	return func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) }
}

// Close closes all connections. Requests in flight fail; later ones return ErrClosed.
func (c *Client) Close() { c.pool.close() }

// Members returns the members among ids. More than MaxIDs ids are several requests, one
// after another; if one of them fails, all do.
func (c *Client) Members(ctx context.Context, ids []int64) (map[int64]users.Member, error) {
	sorted := slices.Clone(ids)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	found := make(map[int64]users.Member, len(sorted))
	for part := range slices.Chunk(sorted, MaxIDs) {
		if err := c.ask(ctx, part, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// ask adds what one request answers to found.
func (c *Client) ask(ctx context.Context, ids []int64, found map[int64]users.Member) error {
	inTime, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	err := c.fetch(inTime, ids, found)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case inTime.Err() != nil:
		// Not the caller's deadline, so it must not look like it.
		return fmt.Errorf("member service: no answer within %v: %w", c.timeout, os.ErrDeadlineExceeded)
	}
	return err
}

// fetch sends a request, on a second connection if it must, and adds the answer to found.
func (c *Client) fetch(ctx context.Context, ids []int64, found map[int64]users.Member) error {
	if err := c.pool.enter(ctx); err != nil {
		return err
	}
	defer c.pool.leave()
	used, err := c.pool.get(ctx)
	if err != nil {
		return fmt.Errorf("member service: %w", err)
	}
	reused := used.reused
	err = c.exchange(ctx, used, ids, found)
	if reused && errors.Is(err, errUnanswered) && ctx.Err() == nil {
		// The service closed a connection that rested; it has probably closed the others.
		c.pool.dropKept()
		if used, err = c.pool.open(ctx); err != nil {
			return fmt.Errorf("member service: %w", err)
		}
		err = c.exchange(ctx, used, ids, found)
	}
	return err
}

func (c *Client) request(ids []int64) []byte {
	const digits = 20
	b := make([]byte, 0, len(c.prefix)+len(c.suffix)+len(ids)*digits)
	b = append(b, c.prefix...)
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, id, 10)
	}
	return append(b, c.suffix...)
}

// errUnanswered says that a connection ended before the first byte of an answer.
var errUnanswered = errors.New("connection closed without an answer")

// exchange uses the connection for one request. It keeps it only if the whole answer was
// read and accepted: a wrong one may belong to another request, and so would the next.
func (c *Client) exchange(ctx context.Context, used *conn, ids []int64, found map[int64]users.Member) (err error) {
	resp := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(resp)
	// Also covers a deadline, and also interrupts what is already waiting.
	stop := context.AfterFunc(ctx, func() { _ = used.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		if stop() && err == nil && !resp.ConnectionClose() && used.r.Buffered() == 0 {
			c.pool.keep(used)
		} else {
			c.pool.drop(used)
		}
	}()
	if _, err = used.Write(c.request(ids)); err == nil {
		_, err = used.r.Peek(1)
	}
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
			return fmt.Errorf("member service: %w: %w", errUnanswered, err)
		}
		return fmt.Errorf("member service: %w", err)
	}
	if err = resp.ReadLimitBody(used.r, MaxAnswer); err != nil {
		return readError(err)
	}
	return c.accept(resp, ids, found)
}

// accept adds the members in the answer to found, or refuses it with an AnswerError.
func (c *Client) accept(resp *fasthttp.Response, ids []int64, found map[int64]users.Member) error {
	if err := checkHead(resp); err != nil {
		return err
	}
	d := c.decoders.Get().(*codec.Decoder)
	defer c.decoders.Put(d)
	defer d.Reset()
	return readBody(d, resp.Body(), ids, found)
}

// readError sorts what fasthttp says about an answer that has begun.
func readError(err error) error {
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return &AnswerError{Reason: fmt.Sprintf("the body is longer than %d bytes", MaxAnswer), Err: err}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return &AnswerError{Reason: "it was cut short", Err: err}
	}
	if nerr := net.Error(nil); errors.As(err, &nerr) {
		return fmt.Errorf("member service: %w", err)
	}
	return &AnswerError{Reason: "it is no HTTP", Err: err}
}
