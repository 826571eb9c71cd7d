// Package api serves the HTTP API: it authenticates requests, reads them, calls the store and writes responses, events
// and metrics. openapi.yaml describes every call, and tests check every response against it. It does not know how bytes
// are kept (server.Store) or what a page looks like (Server.Viewer).
package api

import (
	"cmp"
	"context"
	"crypto/tls"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/limit"
	"github.com/ccship/ccship/server/wire"
	"github.com/ccship/ccship/transcript"
)

const (
	// DefaultMaxBody limits a decompressed request: a line of 64 MiB in base64, with space to spare.
	DefaultMaxBody = 128 << 20
	// DefaultMaxRequests is how many requests run at once; more wait.
	DefaultMaxRequests = 64
	// DefaultMaxConns is how many connections are kept; beyond it the longest idle ones are closed.
	DefaultMaxConns = 2048

	defaultPatience = 20 * time.Second
	bodyPatience    = 5 * time.Minute
	idlePatience    = 2 * time.Minute
	stopPatience    = 4 * time.Second
	maxHeader       = 64 << 10
)

// Hub passes changes to listeners. Safe for concurrent use.
type Hub interface {
	// Admit counts one listener of a user; the caller calls leave once. server.ErrTooManyListeners beyond the bounds.
	Admit(user int64) (leave func(), err error)
	// Listen returns changes that filter lets through, until ctx is done or the hub ends; then it closes the channel. A
	// zero Change says that anything may have changed.
	Listen(ctx context.Context, filter func(server.Change) bool) <-chan server.Change
	// Listeners is how many are admitted.
	Listeners() int
}

// Server is the HTTP side. Set the exported fields before Handler or Run.
type Server struct {
	Version     string
	Viewer      http.Handler       // gets what is not the API's; nil: nothing there
	Export      Exporter           // writes md and html; nil: there are none
	Prices      *transcript.Prices // nil: the built-in list
	Base        string             // path that everything is below, for example "/ccship"; "": the root
	PublicURL   string             // where browsers reach it, with Base; "": as the request says
	Hosts       []string           // host names it accepts, besides loopback names; none: all
	MetricsOpen bool               // /metrics needs no key
	MaxBody     int64              // bytes of a decompressed request; 0: DefaultMaxBody
	MaxRequests int                // at once; 0: DefaultMaxRequests
	MaxIntake   int64              // bytes of lines that are being stored; 0: limit.DefaultIntake
	MaxQueue    int                // requests with lines that wait to be read; 0: limit.DefaultQueue
	MaxConns    int                // at once; 0: DefaultMaxConns
	Rates       *limit.Rates       // of requests of one user, shared with the viewer; nil: no limit
	Quota       server.Quota       // of each user without limits of its own
	Patience    time.Duration      // for headers, and for a body that comes slower than minRate; 0: 20 s
	TLS         *tls.Config        // nil: no encryption
	Log         *slog.Logger

	store     stores
	access    *auth.Access
	hub       Hub
	slots     *limit.Slots
	intake    *limit.Intake // before lines are read
	bodies    *limit.Bodies
	counts    *metricCounts
	conns     *limit.Conns
	linkCache linkRequestCache
	beat      time.Duration // between heartbeats of /api/events
	recheck   time.Duration // of the key of a request that waits or is being read
}

// New makes a server on store. access authenticates requests, hub announces changes. New starts nothing.
func New(store server.Store, access *auth.Access, hub Hub) *Server {
	return &Server{store: storesOf(store), access: access, hub: hub, Log: slog.New(slog.DiscardHandler)}
}

// Handler returns the handler of the whole server. Call it once.
func (s *Server) Handler() http.Handler {
	s.fill()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.health)
	mux.HandleFunc("GET /metrics", s.showMetrics)
	mux.HandleFunc("GET "+protocol.SameHostPath, protocol.AnswerSameHost)
	mux.HandleFunc("GET "+protocol.KeyProofPath, s.proof)
	for _, r := range s.routes() {
		mux.HandleFunc(r.pattern, s.guard(r))
	}
	if s.Viewer != nil {
		mux.Handle("/", s.Viewer)
	}
	return limit.Paced(announce(compressAnswers(s.rebase(s.observe(s.checkHost(mux))))), s.Patience)
}

// fill sets what was left at zero.
func (s *Server) fill() {
	s.MaxBody = cmp.Or(max(s.MaxBody, 0), DefaultMaxBody)
	s.MaxRequests = cmp.Or(max(s.MaxRequests, 0), DefaultMaxRequests)
	s.MaxConns = cmp.Or(max(s.MaxConns, 0), DefaultMaxConns)
	s.Patience = cmp.Or(max(s.Patience, 0), defaultPatience)
	if s.Prices == nil {
		s.Prices = transcript.DefaultPrices()
	}
	if s.beat <= 0 {
		s.beat, s.recheck = defaultBeat, recheck
	}
	s.slots = limit.NewSlots(int64(s.MaxRequests), 0)
	s.intake = limit.NewIntake(s.MaxRequests, s.MaxIntake, s.MaxQueue)
	s.bodies = limit.NewBodies(s.MaxBody)
	s.counts = newMetrics()
	s.conns = limit.NewConns(s.MaxConns)
}

// announce adds the headers that name what this server supports.
func announce(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set(protocol.HeaderVersion, strconv.Itoa(protocol.Version))
		h.Set(protocol.HeaderAccept, "checkpoints, documents, blobs")
		h.Set("Accept-Encoding", "zstd, gzip")
		h.Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	s.answer(w, http.StatusOK, struct {
		OK      bool   `json:"ok"`
		Version string `json:"version"`
	}{true, s.Version})
}

// Run serves on ln until ctx is done, then lets running requests end for a few seconds; the hub must end then too, for
// clients that listen. It closes ln. A stop is not an error.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	h := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: s.Patience,
		ReadTimeout:       bodyPatience,
		IdleTimeout:       idlePatience,
		MaxHeaderBytes:    maxHeader,
		ConnState:         s.conns.Changed,
		ConnContext:       s.conns.Context,
		TLSConfig:         s.TLS,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() {
		if s.TLS != nil {
			served <- h.ServeTLS(ln, "", "")
			return
		}
		served <- h.Serve(ln)
	}()
	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
	defer cancel()
	err := h.Shutdown(stop)
	if errors.Is(err, context.DeadlineExceeded) {
		err = h.Close() // requests that are cut off were not acknowledged
	}
	<-served //nolint:errcheck // http.ErrServerClosed
	if err != nil {
		return fmt.Errorf("stop serving: %w", err)
	}
	return nil
}

// openapiYAML describes the API. A test checks every answer and every route against it.
//
//go:embed openapi.yaml
var openapiYAML []byte

// openapi is GET /api/openapi.yaml.
func (s *Server) openapi(w http.ResponseWriter, _ *http.Request, _ server.Key) error {
	w.Header().Set("Content-Type", "application/yaml")
	return s.write(w, openapiYAML)
}

// stores is what the server asks of its store, by what it is about.
type stores struct {
	sessions  sessionStore
	search    server.Searcher
	artifacts server.Artifacts
	writes    writeStore
	users     server.Users
	masks     server.Masker
	recall    derive.AnswerStore
	names     derive.Names
	people    accountStore
	kept      keptStore
	measured  measured
}

func storesOf(s server.Store) stores { return stores{s, s, s, s, s, s, s, s, s, s, s} }

type sessionStore interface {
	server.SessionFinder
	server.Forgetter
	KeptUntil(ctx context.Context, stream int64, now time.Time) (server.RetentionOutlook, error)
}

type writeStore interface {
	server.Ingester
	server.ArtifactIngester
	server.Ledgers
}

// defaultBeat keeps proxies from closing a quiet connection. At each beat the key is checked again, and before each
// change of another user what is shared.
const defaultBeat = 15 * time.Second

// eventAnswer says that lines were stored.
type eventAnswer struct {
	SessionID   string    `json:"session_id"`
	User        string    `json:"user"`
	Machine     string    `json:"machine"`
	ProjectHash string    `json:"project_hash"`
	Generation  int64     `json:"generation"`
	From        int64     `json:"from_line"`
	To          int64     `json:"to_line"` // before it
	At          time.Time `json:"at"`
}

// artifactEvent announces stored checkpoints or documents.
type artifactEvent struct {
	SessionID   string    `json:"session_id"`
	User        string    `json:"user"`
	Machine     string    `json:"machine"`
	ProjectHash string    `json:"project_hash"`
	At          time.Time `json:"at"`
}

// events is GET /api/events?session&project&machine&user: server-sent events for as long as the client listens.
// "change" has the position of stored lines; "checkpoints" and "documents" announce such artifacts; "missed" means that
// anything may have changed: the client was too slow or reconnected with a Last-Event-ID, and missed events are not
// kept. Events have no content.
func (s *Server) events(w http.ResponseWriter, r *http.Request, who server.Key) error {
	f := s.filter(r)
	wanted := wantedChanges(f)
	if f.Err != nil {
		return f.Err
	}
	sight, err := s.access.Sight(r.Context(), func(ctx context.Context) (server.User, error) {
		key, err := s.access.Key(ctx, s.access.Remote(r), r.Header.Get("X-API-Key"))
		return key.User, err
	})
	if err != nil {
		return err
	}
	leave, err := s.hub.Admit(who.User.ID)
	if err != nil {
		return wire.Refuse(http.StatusServiceUnavailable, "busy", err.Error())
	}
	defer leave()
	w.Header().Set("Cache-Control", "no-store")
	to, names := limit.NewEvents(w), namesOf{}
	changes := s.hub.Listen(r.Context(), wanted)
	hello := ": listening\n\n"
	if r.Header.Get("Last-Event-ID") != "" {
		hello = missedEvent
	}
	if to.Send(hello) != nil {
		return nil // gone
	}
	// A client that may not listen any more is refused when it reconnects.
	sight.Follow(r.Context(), changes, s.beat, func(c server.Change) error {
		if err := s.learn(r.Context(), names, c.Owner); err != nil {
			return err
		}
		event, err := eventOf(c, names[c.Owner])
		if err != nil {
			return err
		}
		return to.Send(event)
	}, func() error { return to.Send(": beat\n\n") })
	return nil
}

// learn adds the name of a user that is not known yet.
func (s *Server) learn(ctx context.Context, names namesOf, user int64) error {
	if _, known := names[user]; known {
		return nil
	}
	found, err := s.store.users.UserNames(ctx, []int64{user})
	if err == nil {
		names[user] = found[user]
	}
	return err
}

// wantedChanges is the query's filter.
func wantedChanges(f *filterOf) func(server.Change) bool {
	session, project, machine, user := f.Text("session"), f.Text("project"), f.Machine(), f.User()
	return func(c server.Change) bool {
		return (session == "" || c.SessionID == session) && (project == "" || c.Project == project) &&
			(machine == nil || c.Machine == *machine) && (user == 0 || c.Owner == user)
	}
}

const missedEvent = "event: missed\ndata: {}\n\n"

// eventOf returns the event that announces a change of a user.
func eventOf(c server.Change, user string) (string, error) {
	var about any = eventAnswer{c.SessionID, user, c.Machine, c.Project, c.Generation, c.From, c.To, c.At}
	switch {
	case c.Stream == 0:
		return missedEvent, nil
	case c.About != "":
		about = artifactEvent{c.SessionID, user, c.Machine, c.Project, c.At}
	}
	b, err := json.Marshal(about)
	return fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", c.At.UnixMicro(), cmp.Or(c.About, "change"), b), err
}
