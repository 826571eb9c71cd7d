package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"sync"
	"time"
)

const (
	maxBody      = 64 << 10        // of a request; the largest there is has three members
	heartbeat    = 3 * time.Second // between two lines of a verify that has nothing to say
	progressRate = 50 * time.Millisecond
	farewell     = time.Second // for answers under way when the daemon stops
)

// Daemon is what the socket lets its owner see and ask for. Every method may be called by several goroutines at once.
// An *Error returned decides what the caller gets to read; any other error is a CodeFailed.
type Daemon interface {
	Status(ctx context.Context) Status
	// Sync answers when it is done or its time is up; how it ended is in the result. An error: it was not tried.
	Sync(ctx context.Context, req SyncRequest) (SyncResult, error)
	// Verify may call progress as often as it likes, from one goroutine at a time.
	Verify(ctx context.Context, req VerifyRequest, progress func(VerifyProgress)) (VerifyReport, error)
	// Metrics writes Prometheus' text format.
	Metrics(w io.Writer)
}

// Endpoint answers on the control socket. Serve may be called once.
type Endpoint struct {
	daemon Daemon
	log    *slog.Logger
	routes map[string]route
}

// route is one path's method and handler.
type route struct {
	method string
	handle func(http.ResponseWriter, *http.Request)
}

// NewServer starts nothing; log gets what no caller can be told.
func NewServer(d Daemon, log *slog.Logger) *Endpoint {
	s := &Endpoint{daemon: d, log: log}
	s.routes = map[string]route{
		"/v1/status":           {http.MethodGet, s.status},
		"/v1/sync":             {http.MethodPost, s.sync},
		"/v1/verify":           {http.MethodPost, s.verify},
		"/metrics":             {http.MethodGet, s.metrics},
		"/debug/pprof/cmdline": {http.MethodGet, pprof.Cmdline},
		"/debug/pprof/profile": {http.MethodGet, pprof.Profile},
		"/debug/pprof/symbol":  {http.MethodGet, pprof.Symbol},
		"/debug/pprof/trace":   {http.MethodGet, pprof.Trace},
	}
	for _, name := range []string{"", "allocs", "block", "goroutine", "heap", "mutex", "threadcreate"} {
		s.routes["/debug/pprof/"+name] = route{http.MethodGet, pprof.Index}
	}
	return s
}

// Serve answers until ctx is done, then cancels what is under way and returns nil. It closes ln.
func (s *Endpoint) Serve(ctx context.Context, ln net.Listener) error {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    maxBody,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	ended := make(chan error, 1)
	var wait sync.WaitGroup
	wait.Go(func() {
		select {
		case <-ctx.Done():
		case <-stopped:
		}
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
		err := server.Shutdown(last)
		if err != nil {
			err = server.Close()
		}
		ended <- err
	})
	err := server.Serve(&ownerListener{ln, s.log})
	close(stopped)
	wait.Wait()
	if ctx.Err() != nil && errors.Is(err, http.ErrServerClosed) {
		return <-ended
	}
	return fmt.Errorf("serve control socket: %w", err)
}

// ownerListener lets only the daemon's own user in, and root, who could become that user.
type ownerListener struct {
	net.Listener
	log *slog.Logger
}

func (l *ownerListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		unix, ok := conn.(*net.UnixConn)
		if !ok {
			return conn, nil // not a Unix socket: whoever made the listener answers for it
		}
		uid, err := peer(unix)
		if err == nil && allowed(uid) {
			return conn, nil
		}
		l.log.Warn("refused control connection", "uid", uid, "err", errors.Join(err, conn.Close()))
	}
}

func allowed(uid int) bool { return uid == os.Geteuid() || uid == 0 }

// ServeHTTP refuses whatever a web page could send, and finds the route.
func (s *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Origin") != "" || r.Header.Get("Referer") != "" {
		s.fail(w, http.StatusForbidden, &Error{Code: "forbidden", Message: "requests of web pages are refused"})
		return
	}
	found, ok := s.routes[r.URL.Path]
	if !ok {
		s.fail(w, http.StatusNotFound, &Error{Code: "not_found", Message: "there is no " + r.URL.Path, Hint: "client and daemon may be of different versions: restart the daemon"})
		return
	}
	if r.Method != found.method && !(r.Method == http.MethodHead && found.method == http.MethodGet) {
		w.Header().Set("Allow", found.method)
		s.fail(w, http.StatusMethodNotAllowed, &Error{Code: "method", Message: r.URL.Path + " takes " + found.method})
		return
	}
	found.handle(w, r)
}

func (s *Endpoint) status(w http.ResponseWriter, r *http.Request) {
	s.answer(w, http.StatusOK, s.daemon.Status(r.Context()))
}

func (s *Endpoint) sync(w http.ResponseWriter, r *http.Request) {
	var req SyncRequest
	if err := readBody(w, r, &req, &req.Timeout); err != nil {
		s.fail(w, http.StatusBadRequest, err)
		return
	}
	result, err := s.daemon.Sync(r.Context(), req)
	if err != nil {
		s.fail(w, http.StatusInternalServerError, asError(err))
		return
	}
	result.SchemaVersion = SchemaVersion
	s.answer(w, http.StatusOK, result)
}

// readBody decodes a request that may be empty and checks its time-out.
func readBody(w http.ResponseWriter, r *http.Request, into any, timeout *string) *Error {
	body := http.MaxBytesReader(w, r.Body, maxBody)
	if err := json.NewDecoder(body).Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return &Error{Code: CodeUsage, Message: fmt.Sprintf("read request: %v", err)}
	}
	if *timeout == "" {
		return nil
	}
	if d, err := time.ParseDuration(*timeout); err != nil || d < 0 {
		return &Error{Code: CodeUsage, Message: fmt.Sprintf("bad timeout %q", *timeout), Hint: "a duration looks like 20s or 2m"}
	}
	return nil
}

// metrics are made whole before the first byte leaves, so that a slow reader holds nothing up inside the daemon.
func (s *Endpoint) metrics(w http.ResponseWriter, _ *http.Request) {
	var text bytes.Buffer
	s.daemon.Metrics(&text)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	if _, err := w.Write(text.Bytes()); err != nil {
		s.log.Debug("answer not read", "err", err)
	}
}

func (s *Endpoint) fail(w http.ResponseWriter, code int, e *Error) { s.answer(w, code, e) }

func (s *Endpoint) answer(w http.ResponseWriter, code int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		code, text = http.StatusInternalServerError, []byte(`{"code":"failed","message":"answer cannot be written as JSON"}`)
		s.log.Error("write answer", "err", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if _, err := w.Write(append(text, '\n')); err != nil {
		s.log.Debug("answer not read", "err", err)
	}
}
