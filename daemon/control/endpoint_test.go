package control

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
)

// fake is a Daemon whose answers a test chooses. What it has no answer for it cannot do.
type fake struct {
	Daemon
	status  Status
	sync    func(context.Context, SyncRequest) (SyncResult, error)
	verify  func(context.Context, VerifyRequest, func(VerifyProgress)) (VerifyReport, error)
	metrics string
}

func (f *fake) Status(context.Context) Status { return f.status }

func (f *fake) Sync(ctx context.Context, req SyncRequest) (SyncResult, error) {
	return f.sync(ctx, req)
}

func (f *fake) Verify(ctx context.Context, req VerifyRequest, progress func(VerifyProgress)) (VerifyReport, error) {
	return f.verify(ctx, req, progress)
}

func (f *fake) Metrics(w io.Writer) { _, _ = io.WriteString(w, f.metrics) }

// socketPath is a path short enough for every system.
func socketPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(filepath.Dir(kit.Socket(t)), "run", "c.sock")
}

// serve answers for d until the test ends, and returns the socket.
func serve(t *testing.T, d Daemon) string {
	t.Helper()
	path := socketPath(t)
	ln := kit.Try(Listen(path)).Must(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- NewServer(d, slog.New(slog.DiscardHandler)).Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			kit.Check(t, err == nil, "Serve: %v", err)
		case <-time.After(2 * time.Minute):
			t.Error("Serve did not end")
		}
		kit.Err(t, "socket after the end", os.ErrNotExist)(os.Lstat(path))
	})
	return path
}

// raw makes one request without the client's manners.
func raw(t *testing.T, path, method, url, body string, header http.Header) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
	}}
	req := kit.Try(http.NewRequestWithContext(t.Context(), method, "http://localhost"+url, strings.NewReader(body))).Must(t)
	for k, v := range header {
		req.Header[k] = v
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	answer := kit.Try(client.Do(req)).Must(t)
	defer answer.Body.Close()
	text := kit.Try(io.ReadAll(answer.Body)).Must(t)
	return answer.StatusCode, string(text)
}

func TestRoutes(t *testing.T) {
	path := serve(t, &fake{
		status:  Status{SchemaVersion: 1, Running: true},
		metrics: "ccship_up 1\n",
		sync: func(context.Context, SyncRequest) (SyncResult, error) {
			return SyncResult{}, errors.New("disk on fire")
		},
		verify: func(context.Context, VerifyRequest, func(VerifyProgress)) (VerifyReport, error) {
			return VerifyReport{Equal: true}, nil
		},
	})
	page := http.Header{"Origin": {"http://evil.example"}}
	for _, test := range []struct {
		name, method, url, body string
		header                  http.Header
		code                    int
		want                    string
	}{
		{"status", "GET", "/v1/status", "", nil, 200, `{"schema_version":1,"running":true}`},
		{"origin", "GET", "/v1/status", "", page, 403, `"code":"forbidden"`},
		{"referer", "POST", "/v1/sync", "", http.Header{"Referer": {"http://evil.example/x"}}, 403, `"code":"forbidden"`},
		{"origin at pprof", "GET", "/debug/pprof/heap", "", page, 403, `"code":"forbidden"`},
		{"unknown", "GET", "/v1/nothing", "", nil, 404, `"code":"not_found"`},
		{"wrong method", "GET", "/v1/sync", "", nil, 405, `"code":"method"`},
		{"sync fails", "POST", "/v1/sync", "{}", nil, 500, `{"code":"failed","message":"disk on fire"}`},
		{"bad JSON", "POST", "/v1/sync", "{", nil, 400, `"code":"usage"`},
		{"bad time-out", "POST", "/v1/sync", `{"timeout":"soon"}`, nil, 400, `bad timeout`},
		{"huge body", "POST", "/v1/sync", `{"timeout":"` + strings.Repeat("x", maxBody) + `"}`, nil, 400, `too large`},
		{"verify without body", "POST", "/v1/verify", "", nil, 200, `"equal":true`},
		{"metrics", "GET", "/metrics", "", nil, 200, "ccship_up 1\n"},
		{"pprof index", "GET", "/debug/pprof/", "", nil, 200, "goroutine"},
		{"pprof profile", "GET", "/debug/pprof/goroutine?debug=1", "", nil, 200, "goroutine profile:"},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, text := raw(t, path, test.method, test.url, test.body, test.header)
			kit.Check(t, code == test.code && strings.Contains(text, test.want),
				"answer %d %s, want %d with %s", code, text, test.code, test.want)
		})
	}
}

func TestClientAndDaemon(t *testing.T) {
	var asked SyncRequest
	d := &fake{
		status: Status{SchemaVersion: 1, Running: true, State: "watching", Files: &Files{Tracked: 3}},
		sync: func(_ context.Context, req SyncRequest) (SyncResult, error) {
			asked = req
			return SyncResult{Done: true, Lines: 7}, nil
		},
		verify: func(_ context.Context, _ VerifyRequest, progress func(VerifyProgress)) (VerifyReport, error) {
			for i := range int64(1000) {
				progress(VerifyProgress{Files: int(i) / 999, FilesTotal: 1, Bytes: i, BytesTotal: 999})
			}
			return VerifyReport{Equal: true, Files: 1}, nil
		},
	}
	c := Dial(serve(t, d))
	status, err := c.Status(t.Context())
	diff := cmp.Diff(d.status, status)
	kit.Check(t, diff == "" && err == nil, "Status: %v %s", err, diff)
	result, err := c.Sync(t.Context(), SyncRequest{Wait: true, Timeout: "3s"})
	kit.Check(t, err == nil && result.Lines == 7 && result.SchemaVersion == 1 && asked == (SyncRequest{Wait: true, Timeout: "3s"}),
		"Sync: %+v %v, asked %+v", result, err, asked)
	var seen []VerifyProgress
	report, err := c.Verify(t.Context(), VerifyRequest{}, func(p VerifyProgress) { seen = append(seen, p) })
	kit.Check(t, err == nil && report.Equal && report.SchemaVersion == 1, "Verify: %+v %v", report, err)
	kit.Check(t, len(seen) != 0 && len(seen) <= 500 && seen[len(seen)-1].Bytes == 999,
		"%d progress reports, the last %+v", len(seen), seen[len(seen)-1:])
}

// An error keeps its code and hint over the socket, from a single answer and from within a stream.
func TestErrorsCross(t *testing.T) {
	refused := &Error{Code: CodeRefusedKey, Message: "the server refuses the key", Hint: "put in another", Retryable: true}
	c := Dial(serve(t, &fake{
		sync: func(context.Context, SyncRequest) (SyncResult, error) { return SyncResult{}, errors.Join(refused) },
		verify: func(context.Context, VerifyRequest, func(VerifyProgress)) (VerifyReport, error) {
			return VerifyReport{}, refused
		},
	}))
	_, syncErr := c.Sync(t.Context(), SyncRequest{})
	_, verifyErr := c.Verify(t.Context(), VerifyRequest{}, nil)
	for name, err := range map[string]error{"sync": syncErr, "verify": verifyErr} {
		got, ok := errors.AsType[*Error](err)
		kit.Check(t, ok && *got == *refused, "%s: %#v, want %#v", name, err, refused)
	}
}

// A stopping daemon cancels what is under way: nobody waits for a sync that has no end.
func TestServeEndsRequests(t *testing.T) {
	begun := make(chan struct{})
	d := &fake{sync: func(ctx context.Context, _ SyncRequest) (SyncResult, error) {
		close(begun)
		<-ctx.Done()
		return SyncResult{Reason: "timeout"}, nil
	}}
	ln := kit.Try(Listen(socketPath(t))).Must(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- NewServer(d, slog.New(slog.DiscardHandler)).Serve(ctx, ln) }()
	answered := make(chan SyncResult, 1)
	go func() {
		r, err := Dial(ln.Addr().String()).Sync(t.Context(), SyncRequest{Wait: true, Timeout: "1h"})
		kit.Check(t, err == nil, "Sync: %v", err)
		answered <- r
	}()
	<-begun
	cancel()
	kit.Err(t, "Serve", nil)(<-ended)
	r := <-answered
	kit.Check(t, r.Reason == "timeout", "Sync: %+v", r)
}

// What a web page can make a browser send is refused on every path, before anything is done.
func TestGuard(t *testing.T) {
	path := serve(t, &fake{status: Status{SchemaVersion: 1, Running: true}}) // anything else it is asked would panic
	refused := []http.Header{
		{"Origin": {"http://evil.example"}}, {"Origin": {"null"}}, {"Referer": {"http://evil.example/x"}},
		{"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-origin"}}, {"Sec-Fetch-Mode": {"no-cors"}},
		{"Host": {"evil.example"}}, {"Host": {"evil.example:80"}}, {"Host": {"localhost.evil.example"}}, {"Host": {"127.0.0.1.evil.example"}},
		{"Host": {"10.0.0.1"}}, {"Host": {"[::2]:5000"}},
	}
	for url, method := range map[string]string{"/v1/status": "GET", "/v1/pause": "POST", "/debug/pprof/heap": "GET", "/nothing": "GET"} {
		for _, header := range refused {
			code, text := raw(t, path, method, url, "", header)
			kit.Check(t, code == 403 && strings.Contains(text, `"code":"forbidden"`), "%s %s with %v: %d %s", method, url, header, code, text)
		}
	}
	for _, host := range []string{"localhost", "LocalHost:1234", "127.0.0.1", "127.1.2.3:80", "[::1]", "[::1]:80", "ccship"} {
		code, text := raw(t, path, "GET", "/v1/status", "", http.Header{"Host": {host}})
		kit.Check(t, code == 200, "host %s: %d %s", host, code, text)
	}
}

// A path takes its own methods and says which.
func TestMethods(t *testing.T) {
	path := serve(t, &fake{status: Status{SchemaVersion: 1}})
	code, text := raw(t, path, "PUT", "/v1/documents", "", nil)
	kit.Check(t, code == 405 && strings.Contains(text, "DELETE, GET, POST"), "PUT: %d %s", code, text)
	code, text = raw(t, path, "HEAD", "/v1/status", "", nil)
	kit.Check(t, code == 200 && text == "", "HEAD: %d %q", code, text)
}

// A socket of the kernel is outside of synctest's time; these let endpoint and client meet over net.Pipe.

type pipeListener struct {
	conn   net.Conn // handed out once
	once   sync.Once
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{} }

func newPipeEndpoint(d Daemon) *Endpoint { return NewServer(d, slog.New(slog.DiscardHandler)) }

func pipeClient(conn net.Conn) *Client {
	return &Client{transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
	}}
}
