package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/protocol"
)

const (
	// retryAfter, in seconds, is when a refused client is to ask again.
	retryAfter = "5"
	// patience is how long a request may take, and those that run may take to end.
	patience = 5 * time.Second
	first    = "the server is starting"
)

// startingServer answers while the real one starts. Set the fields before Run.
type startingServer struct {
	Version string
	TLS     *tls.Config // nil: no encryption
	Log     *slog.Logger

	why atomic.Pointer[string]
}

// Say sets why the server does not serve yet.
func (s *startingServer) Say(why string) { s.why.Store(&why) }

// health is the answer to GET /healthz.
type health struct {
	OK      bool   `json:"ok"`
	Version string `json:"version"`
	State   string `json:"state"`
	Message string `json:"message"`
}

type refusal struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// ServeHTTP refuses every request with 503, and says when to come back. A daemon learns from the headers that this is
// a server of its own kind, which acknowledged nothing.
func (s *startingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	why := first
	if text := s.why.Load(); text != nil {
		why = *text
	}
	h := w.Header()
	h.Set(protocol.HeaderVersion, "1")
	h.Set(protocol.HeaderAccept, "checkpoints, documents, blobs")
	h.Set("Accept-Encoding", "zstd, gzip")
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Retry-After", retryAfter)
	w.WriteHeader(http.StatusServiceUnavailable)
	var answer any = health{false, s.Version, "starting", why}
	if path.Base(r.URL.Path) != "healthz" {
		no := refusal{}
		no.Error.Code, no.Error.Message = "starting", why+"; try again in a few seconds"
		answer = no
	}
	_ = json.NewEncoder(w).Encode(answer) // the client may be gone
}

// Run answers on ln until stop is called, which returns once nothing of it uses ln any more; ln stays open, and
// connections that come meanwhile wait in its queue. ln must have deadlines, as those of TCP and Unix sockets do.
func (s *startingServer) Run(ln net.Listener) (stop func() error, err error) {
	deadline, ok := ln.(interface{ SetDeadline(t time.Time) error })
	if !ok {
		return nil, errors.New("this listener can't be lent")
	}
	h := &http.Server{
		Handler: s, ReadTimeout: patience, WriteTimeout: patience, TLSConfig: s.TLS,
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	h.SetKeepAlivesEnabled(false) // the next request is for the real server
	lent := &lent{Listener: ln, deadline: deadline.SetDeadline}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if s.TLS != nil {
			_ = h.ServeTLS(lent, "", "") // ended by stop
			return
		}
		_ = h.Serve(lent)
	}()
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if h.Shutdown(ctx) != nil {
			_ = h.Close() // who is cut off was not served anyway
		}
		<-served
		return deadline.SetDeadline(time.Time{})
	}, nil
}

// lent is a listener whose Close ends Accept and nothing else.
type lent struct {
	net.Listener
	deadline func(time.Time) error
	ended    atomic.Bool
}

// Accept waits for a connection until Close.
func (l *lent) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil && l.ended.Load() {
		return nil, net.ErrClosed
	}
	return c, err
}

// Close ends Accept.
func (l *lent) Close() error {
	l.ended.Store(true)
	return l.deadline(time.Unix(1, 0))
}
