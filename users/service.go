package users

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/valyala/bytebufferpool"

	"pinion/internal/stats"
)

// Defaults of Config.
const (
	DefaultL1Bytes     = 256 << 20
	DefaultTTL         = 60 * time.Second
	DefaultMissingTTL  = 30 * time.Second
	DefaultDegradedTTL = 900 * time.Millisecond
	// DefaultLoadTimeout is below the time that requests have (5 s in package
	// handlers): a part that hangs is then left out of the answer, and does not cost it.
	DefaultLoadTimeout = 4 * time.Second
	// DefaultAnnounceTimeout is longer than the supervisor of pinion's cells needs to
	// give up on a silent one (see cell.Member.Announce).
	DefaultAnnounceTimeout = 6 * time.Second

	// DefaultStaleTTL is how much longer L1 keeps a user for when Rows cannot be read.
	DefaultStaleTTL = 10 * time.Minute

	// maxDegradedTTL and the lag of the cache's clock make one second.
	maxDegradedTTL = time.Second - 2*clockResolution
)

// Config says what a Service joins and how long it remembers. Only Rows is required.
type Config struct {
	// Rows answers and stores the SQL part of users.
	Rows Rows
	// Attributes answers the attributes; nil: all users have none.
	Attributes AttributeSource
	// Members answers the memberships; nil: no user is a member.
	Members MemberSource

	// AttributeWriter stores the attributes; nil: Rows does. Rows is given them all the
	// same, as part of a NewUser or a Patch.
	AttributeWriter AttributeWriter

	// Shared is the cache that this process shares with others, as L2; nil: none. It is
	// used only while SetCoherent says so.
	Shared SharedCache
	// Voids keeps removals that Shared could not be told of; nil: a write whose removal
	// fails is answered with ErrUnknownOutcome.
	Voids VoidLog

	// Limits bounds the calls of each source.
	Limits Limits

	// L1Bytes caps the L1 cache, in bytes, its bookkeeping included. Zero or less
	// means DefaultL1Bytes.
	L1Bytes int64
	// TTL is how long L1 keeps a user. Up to a fifth is added at random. Zero or
	// less means DefaultTTL.
	TTL time.Duration
	// MissingTTL is how long L1 remembers that an id has no user. Up to a fifth is
	// added at random. Zero or less means DefaultMissingTTL.
	MissingTTL time.Duration
	// DegradedTTL is how long L1 keeps a user that lacks a source. Zero or less, and
	// more than DefaultDegradedTTL, mean DefaultDegradedTTL, which keeps the answer
	// below one second.
	DegradedTTL time.Duration
	// StaleTTL is how long L1 keeps a user after its TTL, to be answered as DegradedStale
	// when Rows cannot be read. Zero means DefaultStaleTTL, less means not at all.
	StaleTTL time.Duration
	// LoadTimeout ends a shared load, whatever the deadlines of its waiters. Zero or
	// less means DefaultLoadTimeout.
	LoadTimeout time.Duration

	// Announce tells the other caches of the same users that id was written, so that
	// their Services Forget it; nil: there are none. It is called for every write that
	// has reached Rows, whatever came of it, after this cache has forgotten id and
	// before the caller hears of the write. It returns when all others have forgotten
	// id too, and soon after ctx has ended; ctx does not end with the caller's.
	//
	// If it fails, the write is answered with ErrUnknownOutcome and the failure is
	// counted in cache_announce_failed_total: it is stored, but the others may answer the
	// older user until their entry has ended (TTL, MissingTTL).
	Announce func(ctx context.Context, id int64) error
	// AnnounceTimeout ends the ctx of Announce. Zero or less means
	// DefaultAnnounceTimeout.
	AnnounceTimeout time.Duration

	// Log gets a line when Announce begins to fail and when it works again, and when the
	// use of Shared ends and begins; nil means slog.Default().
	Log *slog.Logger
	// Stats takes the counters, for the private port of pinion's own binary; nil: a
	// registry nobody reads.
	Stats *stats.Registry
}

func (cfg *Config) setDefaults() {
	if cfg.L1Bytes <= 0 {
		cfg.L1Bytes = DefaultL1Bytes
	}
	if cfg.TTL <= 0 {
		cfg.TTL = DefaultTTL
	}
	if cfg.MissingTTL <= 0 {
		cfg.MissingTTL = DefaultMissingTTL
	}
	if cfg.DegradedTTL <= 0 || cfg.DegradedTTL > maxDegradedTTL {
		cfg.DegradedTTL = DefaultDegradedTTL
	}
	if cfg.LoadTimeout <= 0 {
		cfg.LoadTimeout = DefaultLoadTimeout
	}
	switch {
	case cfg.StaleTTL == 0:
		cfg.StaleTTL = DefaultStaleTTL
	case cfg.StaleTTL < 0:
		cfg.StaleTTL = 0
	}
	cfg.Limits.SQL.setDefaults(DefaultSQLTimeout)
	cfg.Limits.Attributes.setDefaults(DefaultPartTimeout)
	cfg.Limits.Members.setDefaults(DefaultPartTimeout)
	cfg.Limits.Shared.setDefaults(DefaultSharedTimeout)
	if cfg.AnnounceTimeout <= 0 {
		cfg.AnnounceTimeout = DefaultAnnounceTimeout
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Stats == nil {
		cfg.Stats = stats.NewRegistry(0)
	}
}

// Causes of the end of a shared load's context. None of them is a caller's error.
var (
	errLoadTimeout = errors.New("no answer in time")
	errNoWaiters   = errors.New("all callers left")
	errClosed      = errors.New("service is closed")
)

// Service answers users by id from its cache and its sources, and writes them.
type Service struct {
	rows        Rows
	attributes  AttributeSource
	members     MemberSource
	attributing AttributeWriter
	loadTimeout time.Duration

	cache   *l1
	flights *flights
	shared  *l2 // nil: there is none
	others  announcer
	missing *Fragment // the one "not there" that all such ids share

	// encoding lends the buffers that users are encoded in. They are of one kind,
	// the JSON of one user: bytebufferpool sizes new buffers after the common one,
	// and serves a mixture badly.
	encoding bytebufferpool.Pool

	hits, misses, negatives, stales *stats.Counter
	sqlSource                       *source
	sqlWrites, attributesWrites     *source
	batchers                        batchers
	attributeless, memberless       complaint

	// base is the parent of every shared load; stop ends it. mu keeps loads from
	// starting while Close waits for them. loads counts the queries of the batchers and
	// the work on the shared cache too.
	base   context.Context
	stop   context.CancelCauseFunc
	mu     sync.Mutex
	closed bool
	loads  sync.WaitGroup
}

// NewService starts a Service. The caller must Close it.
func NewService(cfg Config) *Service {
	cfg.setDefaults()
	s := &Service{
		rows:        cfg.Rows,
		attributes:  cfg.Attributes,
		members:     cfg.Members,
		attributing: cfg.AttributeWriter,
		loadTimeout: cfg.LoadTimeout,
		cache:       newL1(&cfg),
		missing:     newMissing(),
	}
	s.flights = newFlights(s.cache)
	s.others = announcer{
		call: cfg.Announce, timeout: cfg.AnnounceTimeout, log: cfg.Log,
		failed: cfg.Stats.Counter("cache_announce_failed_total",
			"Writes that could not be announced to the other caches, which may be stale until their entry ends.").With(),
	}
	s.attributeless.log, s.attributeless.source = cfg.Log, "attributes"
	s.memberless.log, s.memberless.source = cfg.Log, "members"
	s.base, s.stop = context.WithCancelCause(context.Background())
	requests := cfg.Stats.Counter("cache_requests_total",
		"Ids looked up in a cache layer, by result: hit, negative (known to be missing), miss, stale (a miss that was answered from L1 after all, because rows could not be read), or error.",
		"layer", "result")
	s.hits = requests.With("l1", "hit")
	s.negatives = requests.With("l1", "negative")
	s.misses = requests.With("l1", "miss")
	s.stales = requests.With("l1", "stale")
	s.connect(&cfg, requests)
	return s
}

// connect puts guards and batchers before the sources.
func (s *Service) connect(cfg *Config, requests *stats.CounterVec) {
	limits := map[string]SourceLimits{
		"sql": cfg.Limits.SQL, "attributes": cfg.Limits.Attributes, "members": cfg.Limits.Members,
	}
	if cfg.Shared != nil {
		limits["l2"] = cfg.Limits.Shared
	}
	sources := newSources(cfg.Stats, limits)
	s.sqlSource, s.sqlWrites, s.attributesWrites = sources["sql"], sources["sql"].writes(), sources["attributes"].writes()
	s.batchers.rows = newBatcher(s.base, &s.loads, sources["sql"], s.fetchRows)
	if s.attributes != nil {
		s.batchers.attributes = newBatcher(s.base, &s.loads, sources["attributes"], s.fetchAttributes)
	}
	if s.members != nil {
		s.batchers.members = newBatcher(s.base, &s.loads, sources["members"], s.fetchMembers)
	}
	if cfg.Shared == nil {
		return
	}
	fills := cfg.Stats.Counter("cache_fills_total",
		"Entries for a cache layer, by result: stored (or refused by the cache, because a write came between), or dropped.", "layer", "result")
	c := &l2{
		cache: cfg.Shared, voids: cfg.Voids, source: sources["l2"], writes: sources["l2"].writes(),
		logged: s.sqlWrites, base: s.base, work: &s.loads, log: cfg.Log,
		hits: requests.With("l2", "hit"), negatives: requests.With("l2", "negative"),
		misses: requests.With("l2", "miss"), errors: requests.With("l2", "error"),
		filled: fills.With("l2", "stored"), dropped: fills.With("l2", "dropped"),
		owed: make(map[int64]struct{}), wake: make(chan struct{}, 1),
	}
	c.lookups = newBatcher(s.base, &s.loads, c.source, c.fetch)
	s.shared = c
	// Until we are told that removals reach us, they do not.
	s.cache.brief.Store(true)
	s.loads.Go(s.keep)
}

// Close ends all loads in progress, waits for them and stops the cache's goroutines.
// It does not close the sources. Later loads fail with ErrUnavailable. A second Close
// does nothing.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop(errClosed)
	s.loads.Wait()
	s.cache.close()
}

// Ready reports whether the service can answer anything: Rows can, or there are users
// in L1, which are served as long as they live. It is for readiness probes: a database
// that fails must not take all processes with warm caches out of service at once.
func (s *Service) Ready(ctx context.Context) error {
	err := s.Ping(ctx)
	if err != nil && s.cache.size() > 0 {
		return nil
	}
	return err
}

// Ping asks Rows whether it can answer.
func (s *Service) Ping(ctx context.Context) error {
	_, err := ask(ctx, s.sqlSource, 0, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.rows.Ping(ctx)
	})
	return err
}
