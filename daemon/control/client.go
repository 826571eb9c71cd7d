package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/ccship/ccship/internal/sys"
)

const (
	statusTimeout = 2 * time.Second  // the answer takes milliseconds
	probeGrace    = 2 * time.Second  // added to statusTimeout when servers are probed first
	syncGrace     = 10 * time.Second // added to the time limit of a sync
	defaultSync   = time.Minute      // the daemon's limit for a sync without a timeout
	verifyStall   = 15 * time.Second // several heartbeats
)

// clientHost is the Host header of requests; it has no meaning.
const clientHost = "ccship"

// Client asks a daemon over its socket. Safe for concurrent use. It holds no connection between calls.
type Client struct {
	Patient bool // only a call's context limits its time; set before the first call

	path      string
	transport *http.Transport
}

// Dial makes a client for the socket at path; it connects with each call.
func Dial(path string) *Client {
	c := &Client{path: path}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var limits net.Dialer
		if !c.Patient {
			limits.Timeout = dialTimeout
		}
		conn, err := sys.DialPeer(ctx, limits, path)
		if err != nil {
			return nil, dialError(path, err)
		}
		return conn, nil
	}
	c.transport = &http.Transport{DisableKeepAlives: true, DialContext: dial}
	return c
}

// Path returns the socket's path.
func (c *Client) Path() string { return c.path }

// dialError explains why the daemon could not be reached.
func dialError(path string, err error) error {
	if tooLong := checkPath(path); tooLong != nil {
		return tooLong
	}
	if info, missing := os.Lstat(path); missing == nil && info.Mode().Type()&fs.ModeSocket == 0 && !oddSocket(info) {
		return unusable(path + " is not a socket")
	}
	switch {
	case busy(err):
		return noAnswer(path)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, sys.ErrForeign):
		return notOurs(path)
	}
	return NewError(CodeNotRunning, ErrNotRunning.Error(),
		"`ccship setup` connects to a server and starts it; `ccship run` starts it in this terminal").AsRetryable()
}

func notOurs(path string) *Error {
	return unusable(fmt.Sprintf("control socket %s belongs to someone else", path))
}

func noAnswer(path string) *Error {
	return NewError(CodeNoAnswer, "the daemon on "+path+" accepts but does not answer",
		"it may be stopped or overloaded: check its process, or restart it").AsRetryable()
}

// Status asks what the daemon is doing. Errors here and below are *Error: ErrNotRunning if no daemon listens,
// CodeNoAnswer when one accepts and sends nothing for two seconds.
func (c *Client) Status(ctx context.Context) (Status, error) { return StatusOf(ctx, c, StatusQuery{}) }

// StatusOf is Status with a query.
func StatusOf(ctx context.Context, c *Client, q StatusQuery) (Status, error) {
	limit, path := statusTimeout, "/v1/status"
	if q.Probe != "" {
		path = named(path, "probe", q.Probe)
	}
	if q.Probe == ProbeWait {
		limit += probeGrace
	}
	return ask[Status](ctx, c, limit, http.MethodGet, path, nil)
}

// Sync makes the daemon check every file; with req.Wait it returns when the sync has ended.
func (c *Client) Sync(ctx context.Context, req SyncRequest) (SyncResult, error) {
	limit := defaultSync
	if d, err := time.ParseDuration(req.Timeout); err == nil {
		limit = d
	}
	var result SyncResult
	err := c.call(ctx, limit+syncGrace, http.MethodPost, "/v1/sync", req, &result)
	return result, err
}

// call makes one request whose whole answer is one document.
func (c *Client) call(ctx context.Context, limit time.Duration, method, path string, body, into any) error {
	if !c.Patient {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	answer, err := c.do(ctx, method, path, body)
	if err != nil {
		return c.explain(ctx, err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		return c.explain(ctx, fmt.Errorf("read answer of daemon: %w", err))
	}
	return nil
}

// ask is call for an answer that is useful only when complete.
func ask[A any](ctx context.Context, c *Client, limit time.Duration, method, path string, body any) (a A, err error) {
	err = c.call(ctx, limit, method, path, body, &a)
	return a, err
}

// do sends a request and turns every answer that is not 200 into an error. The caller closes the body.
func (c *Client) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("write request: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+clientHost+path, bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("write request: %w", err)
	}
	answer, err := (&http.Client{Transport: c.transport}).Do(req)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	defer answer.Body.Close()
	refusal := &Error{}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxBody)).Decode(refusal); err != nil || refusal.Message == "" {
		refusal = Failed("the daemon answered "+answer.Status, "")
	}
	return nil, refusal
}

// explain turns a transport error into an *Error. ctx is the one with the call's own time limit.
func (c *Client) explain(ctx context.Context, err error) error {
	var known *Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return noAnswer(c.path)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case sys.Foreign(c.path):
		return notOurs(c.path)
	}
	if conn, gone := sys.DialPeer(ctx, net.Dialer{Timeout: dialTimeout}, c.path); gone == nil {
		_ = conn.Close()
	} else if e := dialError(c.path, gone); errors.Is(e, ErrNotRunning) {
		return e // the daemon ended during the request
	}
	return Failed(fmt.Sprintf("ask daemon: %v", err), "it may have stopped just now: `ccship status`").AsRetryable()
}

// Verify compares the disk with the server. progress, which may be nil, is called as reports arrive.
func (c *Client) Verify(ctx context.Context, req VerifyRequest, progress func(VerifyProgress)) (VerifyReport, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(verifyStall, func() { cancel(context.DeadlineExceeded) })
	defer stall.Stop()
	answer, err := c.do(ctx, http.MethodPost, "/v1/verify", req)
	if err != nil {
		return VerifyReport{}, c.explain(ctx, err)
	}
	defer answer.Body.Close()
	for lines := json.NewDecoder(answer.Body); ; {
		var event VerifyEvent
		if err := lines.Decode(&event); err != nil {
			return VerifyReport{}, c.explain(ctx, fmt.Errorf("read answer of daemon: %w", err))
		}
		stall.Reset(verifyStall)
		switch {
		case event.Error != nil:
			return VerifyReport{}, event.Error
		case event.Report != nil:
			return *event.Report, nil
		case event.Progress != nil && progress != nil:
			progress(*event.Progress)
		}
	}
}
