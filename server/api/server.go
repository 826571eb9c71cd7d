package api

import (
	"cmp"
	"context"
	"crypto/tls"
	_ "embed"
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
	"github.com/ccship/ccship/server/limit"
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
	return announce(compressAnswers(s.rebase(s.observe(s.checkHost(mux)))))
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
	s.bodies = limit.NewBodies(s.MaxBody, s.Patience)
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
