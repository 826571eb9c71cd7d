package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	// DefaultMaxBody is the limit of a decompressed request: a line of 64 MiB in base64, with room to spare.
	DefaultMaxBody = 128 << 20
	// DefaultMaxRequests is how many requests are worked on at once; more wait.
	DefaultMaxRequests = 64

	headerPatience = 10 * time.Second
	bodyPatience   = 5 * time.Minute
	idlePatience   = 2 * time.Minute
	stopPatience   = 4 * time.Second
	maxHeader      = 64 << 10
)

// Server is the HTTP side. Set the exported fields before Handler or Run.
type Server struct {
	Version     string
	Viewer      http.Handler // gets what is not the API's; nil: nothing there
	MaxBody     int64        // bytes of a decompressed request; 0: DefaultMaxBody
	MaxRequests int          // at once; 0: DefaultMaxRequests
	Log         *slog.Logger

	store  Store
	keys   *Keys
	slots  chan struct{} // one token a request in work
	large  chan struct{} // one token a body beyond smallBody
	bodies bodies
}

// New makes a server that keeps everything in store. It starts nothing.
func New(store Store, keys *Keys) *Server {
	return &Server{store: store, keys: keys, Log: slog.New(slog.DiscardHandler)}
}

// Handler is the whole of the server. To be called once.
func (s *Server) Handler() http.Handler {
	if s.MaxBody <= 0 {
		s.MaxBody = DefaultMaxBody
	}
	if s.MaxRequests <= 0 {
		s.MaxRequests = DefaultMaxRequests
	}
	s.slots = make(chan struct{}, s.MaxRequests)
	s.large = make(chan struct{}, largeBodies)

	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.health)
	mux.HandleFunc("POST /api/conversations", s.guard(s.ingest))
	mux.HandleFunc("GET /api/sessions", s.guard(s.sessions))
	mux.HandleFunc("GET /api/sessions/{id}", s.guard(s.session))
	mux.HandleFunc("GET /api/sessions/{id}/entries", s.guard(s.entries))
	mux.HandleFunc("GET /api/sessions/{id}/raw", s.guard(s.raw))
	mux.HandleFunc("GET /api/sessions/{id}/digest", s.guard(s.digest))
	mux.HandleFunc("/api/", s.guard(func(http.ResponseWriter, *http.Request) error {
		return &refusal{http.StatusNotFound, "not_found", "no such call; the calls there are begin with /api/conversations and /api/sessions"}
	}))
	if s.Viewer != nil {
		mux.Handle("/", s.Viewer)
	}
	return announce(mux)
}

// announce tells every client what this server speaks.
func announce(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Ccship-Protocol", "1")
		h.Set("Accept-Encoding", "zstd, gzip")
		h.Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// guard lets a call through that has a key, when there is a slot for it. An error it returns is answered.
func (s *Server) guard(call func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := s.keys.Check(r.Context(), HashKey(r.Header.Get("X-API-Key"))); err != nil {
			s.refuse(w, r, err)
			return
		}
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-r.Context().Done():
			s.refuse(w, r, r.Context().Err())
			return
		case <-time.After(headerPatience):
			s.refuse(w, r, &refusal{http.StatusServiceUnavailable, "busy", "too many requests at once"})
			return
		}
		if err := call(w, r); err != nil {
			s.refuse(w, r, err)
		}
	}
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	s.answer(w, http.StatusOK, struct {
		OK      bool   `json:"ok"`
		Version string `json:"version"`
	}{true, s.Version})
}

// Run serves on ln until ctx is done, then lets running requests end for a few seconds. It closes ln. Being stopped
// is no error.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	h := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: headerPatience,
		ReadTimeout:       bodyPatience,
		IdleTimeout:       idlePatience,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- h.Serve(ln) }()
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
	<-served
	if err != nil {
		return fmt.Errorf("stop serving: %w", err)
	}
	return nil
}
