package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server/store"
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

const (
	// startExtended is for how long a start that goes on asks the service manager each time.
	startExtended = 2 * time.Minute
	startBeat     = 20 * time.Second
)

// stepKey is of what a context has tests call before each step of the store, as store.Opening.Step.
type stepKey struct{}

// openServing opens the store of a server. Meanwhile ln answers: its health, and to everything else that it is to be
// sent again. The service manager waits for it too.
func openServing(ctx context.Context, f serveFlags, set settings, ln net.Listener) (st store.Store, err error) {
	first := &startingServer{Version: version, TLS: set.tls, Log: set.log}
	stop, err := first.Run(ln)
	if err != nil {
		return nil, err
	}
	opening, cancel := context.WithCancel(ctx)
	defer cancel()
	var said atomic.Value
	say := func(text string) {
		first.Say(text)
		set.manager.Starting(text, startExtended)
		if said.Swap(text) != text {
			set.log.Info("the API answers 503 until the store is open", "why", text)
		}
	}
	go func() {
		tick := time.NewTicker(startBeat)
		defer tick.Stop()
		for {
			select {
			case <-opening.Done():
				return
			case <-tick.C:
				text, _ := said.Load().(string)
				set.manager.Starting(text, startExtended)
			}
		}
	}()
	step, _ := ctx.Value(stepKey{}).(func(string) error)
	st, err = openStore(ctx, f.store,
		store.Opening{Say: say, Replica: f.replica, Blocks: f.blocks, Step: step})
	if stopped := stop(); stopped != nil && err == nil {
		err = errors.Join(stopped, st.Close())
	}
	return st, err
}

// socketPath returns the path in unix:PATH or unix:///PATH; "" for an address of a network.
func socketPath(address string) string {
	at, ok := strings.CutPrefix(address, "unix:")
	if !ok {
		return ""
	}
	return strings.TrimPrefix(at, "//")
}

// listenSocket listens on a Unix socket that only this user may connect to. The socket of a server that has ended is
// replaced; anything else that is there stays.
func listenSocket(ctx context.Context, at string) (net.Listener, error) {
	at, err := filepath.Abs(at)
	if err != nil {
		return nil, fmt.Errorf("listen on unix:%s: %w", at, err)
	}
	if err := removeStale(ctx, at); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: ownerOnly}
	ln, err := config.Listen(ctx, "unix", at)
	if err == nil {
		if err = os.Chmod(at, 0o600); err != nil {
			err = errors.Join(err, ln.Close())
		}
	}
	if err != nil {
		return nil, hinted{fmt.Errorf("listen on unix://%s: %w", at, err),
			"choose a path of at most 103 bytes in a folder that you may write to"}
	}
	return ln, nil
}

// removeStale removes a socket that nobody listens on.
func removeStale(ctx context.Context, at string) error {
	info, err := os.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.Mode().Type() != fs.ModeSocket {
		return hinted{fmt.Errorf("listen on unix://%s: there is a file, and it is not a socket", at), "choose another path"}
	}
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "unix", at)
	if err == nil {
		return hinted{errors.Join(fmt.Errorf("listen on unix://%s: a server listens there", at), conn.Close()),
			"stop it, or choose another path"}
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket of a server that has ended: %w", err)
	}
	return nil
}

// certificate is a key pair from two files, which are read again when they change: certificates are renewed while the
// server runs. Safe for concurrent use.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu     sync.Mutex
	pair   *tls.Certificate // guarded by mu, as is all below
	stamps [2]fileStamp
	warned bool
}

// fileStamp identifies a version of a file.
type fileStamp struct {
	size int64
	at   time.Time
}

// loadCertificate reads the pair for the first time.
func loadCertificate(cert, key string, log *slog.Logger) (*certificate, error) {
	c := &certificate{cert: cert, key: key, log: log}
	if err := c.refresh(); err != nil {
		return nil, err
	}
	return c, nil
}

// config serves with the pair as it is at each handshake.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			err := c.refresh()
			if err != nil && !c.warned {
				// Renewing writes one file after the other; the old pair serves until both fit.
				c.log.Warn("cannot reload the certificate; the old one stays in use", "error", err)
			}
			c.warned = err != nil
			return c.pair, nil
		},
	}
}

// refresh reads the pair if a file has changed. The caller holds mu, or is alone. On error the old pair stays.
func (c *certificate) refresh() error {
	var stamps [2]fileStamp
	for i, name := range []string{c.cert, c.key} {
		info, err := os.Stat(name)
		if err != nil {
			return fmt.Errorf("read certificate: %w", err)
		}
		stamps[i] = fileStamp{info.Size(), info.ModTime()}
	}
	if c.pair != nil && stamps == c.stamps {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("read certificate: %w", err)
	}
	if c.pair != nil {
		c.log.Info("certificate reloaded")
	}
	c.pair, c.stamps = &pair, stamps
	return nil
}
