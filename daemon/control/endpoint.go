package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ccship/ccship/internal/sys"
)

const (
	maxBody      = 64 << 10        // of a request; the largest ones name dead letters
	heartbeat    = 3 * time.Second // between two lines of a verify without news
	progressRate = 50 * time.Millisecond
	farewell     = time.Second // for answers in progress when the daemon stops
)

// Endpoint answers on the control socket. Serve may be called once.
type Endpoint struct {
	daemon Daemon
	log    *slog.Logger
	routes map[string]methods
}

// methods are the handlers of one path.
type methods map[string]http.HandlerFunc

// NewServer starts nothing. log gets the errors that cannot be sent to a caller.
func NewServer(d Daemon, log *slog.Logger) *Endpoint {
	s := &Endpoint{daemon: d, log: log}
	s.routes = map[string]methods{
		"/debug/pprof/cmdline": {http.MethodGet: pprof.Cmdline},
		"/debug/pprof/profile": {http.MethodGet: pprof.Profile},
		"/debug/pprof/symbol":  {http.MethodGet: pprof.Symbol},
		"/debug/pprof/trace":   {http.MethodGet: pprof.Trace},
	}
	for _, name := range []string{"", "allocs", "block", "goroutine", "heap", "mutex", "threadcreate"} {
		s.routes["/debug/pprof/"+name] = methods{http.MethodGet: pprof.Index}
	}
	for operation, handle := range s.operations() {
		method, path, _ := strings.Cut(operation, " ")
		if s.routes[path] == nil {
			s.routes[path] = methods{}
		}
		s.routes[path][method] = handle
	}
	return s
}

// Serve answers requests until ctx is done, then cancels those in progress and returns nil. It closes ln.
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

// ownerListener accepts connections only from the daemon's own user, and from root, who could become that user.
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
			return conn, nil // not a Unix socket: the listener's creator is responsible
		}
		uid, err := sys.PeerOf(unix)
		if err == nil && sys.TrustedPeer(uid) {
			return conn, nil
		}
		l.log.Warn("refused control connection", "uid", uid, "err", errors.Join(err, conn.Close()))
	}
}

// ServeHTTP refuses whatever a web page could send, and calls the handler of the route.
func (s *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if why := refusal(r); why != "" {
		s.fail(w, NewError(CodeForbidden, why, "use the command line, or curl --unix-socket with http://localhost/"))
		return
	}
	found, ok := s.routes[r.URL.Path]
	if !ok {
		s.fail(w, NewError(CodeNotFound, "there is no "+r.URL.Path,
			"client and daemon may be of different versions: restart the daemon"))
		return
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	handle, ok := found[method]
	if !ok {
		allowed := strings.Join(slices.Sorted(maps.Keys(found)), ", ")
		w.Header().Set("Allow", allowed)
		s.fail(w, NewError(CodeMethod, r.URL.Path+" takes "+allowed,
			"client and daemon may be of different versions: restart the daemon"))
		return
	}
	handle(w, r)
}

func (s *Endpoint) sync(ctx context.Context, req SyncRequest) (SyncResult, error) {
	if err := checkTimeout(req.Timeout); err != nil {
		return SyncResult{}, err
	}
	result, err := s.daemon.Sync(ctx, req)
	result.SchemaVersion = SchemaVersion
	return result, err
}

// checkTimeout refuses text that is not a duration.
func checkTimeout(text string) *Error {
	if text == "" {
		return nil
	}
	if d, err := time.ParseDuration(text); err != nil || d < 0 {
		return Usage(fmt.Sprintf("bad timeout %q", text), "a duration looks like 20s or 2m")
	}
	return nil
}

// metrics completes the text before it sends the first byte, so that a slow reader does not block the daemon.
func (s *Endpoint) metrics(w http.ResponseWriter, _ *http.Request) {
	var text bytes.Buffer
	s.daemon.Metrics(&text)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	if _, err := w.Write(text.Bytes()); err != nil {
		s.log.Debug("answer not read", "err", err)
	}
}

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

// dialTimeout limits how long a client waits for a connection. The kernel connects or refuses at once; the time is for
// a client process that gets no CPU on an overloaded machine.
const dialTimeout = 5 * time.Second

// Listen makes the control socket with mode 0600, in a folder that it makes with mode 0700 if it is missing. It
// replaces a socket on which nobody answers, and leaves anything else at the path alone. Errors are *Error with a hint:
// ErrInUse when a daemon answers, CodeSocket for a path that cannot be used. Closing the listener removes the socket.
func Listen(path string) (net.Listener, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, unusable(fmt.Sprintf("make folder of control socket: %v", err))
	}
	if err := sys.SocketFolder(filepath.Dir(path)); err != nil {
		return nil, notOurs(path)
	}
	if err := RemoveStale(path); err != nil {
		return nil, err
	}
	listen := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(restrict)
	}}
	ln, err := listen.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, unusable(fmt.Sprintf("listen on control socket: %v", err))
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(unusable(fmt.Sprintf("restrict control socket: %v", err)), ln.Close())
	}
	return ln, nil
}

// RemoveStale removes a socket that a killed daemon left behind, and nothing else. A missing file is no error; for
// other errors see Listen.
func RemoveStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unusable(fmt.Sprintf("look at control socket: %v", err))
	}
	if info.Mode().Type()&fs.ModeSocket == 0 && !oddSocket(info) {
		return unusable(fmt.Sprintf("%s exists and is not a socket; it was left alone", path))
	}
	conn, err := sys.DialPeer(context.Background(), net.Dialer{Timeout: dialTimeout}, path)
	if err == nil {
		return errors.Join(NewError(CodeInUse, "a daemon is running already (it answers on "+path+")",
			"see it with `ccship status`"), conn.Close())
	}
	if busy(err) {
		return NewError(CodeInUse, "a daemon is running already, but does not answer on "+path,
			"stop that process before another is started")
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, sys.ErrForeign) {
		return notOurs(path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unusable(fmt.Sprintf("remove stale control socket: %v", err))
	}
	return nil
}

// busy reports whether a dial failed because the listener is too slow to accept, not because there is none.
func busy(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, syscall.EAGAIN)
}

func unusable(message string) *Error {
	return NewError(CodeSocket, message, "name another path with --socket or CCSHIP_SOCKET")
}

// checkPath refuses paths too long for a socket address of this system; bind would only say "invalid argument".
func checkPath(path string) error {
	if len(path) <= maxPath {
		return nil
	}
	return unusable(fmt.Sprintf("control socket path is too long: %d bytes where this system allows %d: %s",
		len(path), maxPath, path))
}

// refusal returns why a request cannot come from a program of the owner; "" when it can. Web pages cannot open a Unix
// socket, but a proxy in front of it, or a future browser, would forward what pages send.
func refusal(r *http.Request) string {
	for _, name := range []string{"Origin", "Referer", "Sec-Fetch-Site", "Sec-Fetch-Mode"} {
		if r.Header.Get(name) != "" {
			return "requests of web pages are refused"
		}
	}
	if !ownHost(r.Host) {
		return "requests for another host are refused"
	}
	return ""
}

// ownHost reports whether a Host header names this machine. It refuses other names, which DNS may point here.
func ownHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if name == "" || name == clientHost || name == "localhost" {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}
