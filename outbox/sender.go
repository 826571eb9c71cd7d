package outbox

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/protocol"
)

// sender makes requests to one destination and classifies the answers. Safe for concurrent use.
type sender struct {
	dest   *Destination
	origin *Origin
	client *http.Client
	codecs *codecs
	owner  Owner // opens blobs
	writer *atomic.Pointer[protocol.Writer]
	health string // URL of the probe
}

// address returns the URL of path elements below the base.
func (s *sender) address(elements ...string) string {
	return s.dest.URL.JoinPath(append([]string{"api"}, elements...)...).String()
}

// endpoint returns the last path element of the address that batches of a kind go to.
func (k Kind) endpoint() string {
	if k.artifact() {
		return k.announced()
	}
	return "conversations"
}

func newSender(d *Drainer, c *codecs) *sender {
	own := *d.Client
	own.CheckRedirect = SameServer
	return &sender{
		dest: &d.dest, origin: &d.origin, client: &own, codecs: c, owner: d.owner, writer: &d.writer,
		health: d.dest.URL.JoinPath("healthz").String(),
	}
}

// NewClient returns an HTTP client for drainers and for other requests to the same servers. It keeps up to idle
// connections per server and follows redirects by SameServer. Requests set their own time-outs.
func NewClient(idle int) *http.Client {
	d := &dialer{Dialer: net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}}
	return &http.Client{CheckRedirect: SameServer, Transport: &http.Transport{
		Proxy: proxyOf, DialContext: d.Dial, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: idle, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, DisableCompression: true,
	}}
}

// SameServer is the redirect policy (http.Client.CheckRedirect) of every client that sends a key. It follows only
// redirects that keep method, body and server, because net/http strips only the headers it knows. An upgrade to https
// is the same server.
func SameServer(req *http.Request, via []*http.Request) error {
	from, to, status := via[0].URL, req.URL, req.Response.StatusCode
	kept := status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect
	same := normalHost(from) == normalHost(to) &&
		(from.Scheme == to.Scheme || from.Scheme == "http" && to.Scheme == "https")
	if !kept || len(via) > 5 || !same {
		return http.ErrUseLastResponse
	}
	return nil
}

// timeout returns the limit for the answer to a request of raw uncompressed bytes.
func timeout(raw int64) time.Duration { return 30*time.Second + time.Duration(raw>>20)*time.Second }

// send makes one POST. The reply says what to do next, also after an error.
func (s *sender) send(ctx context.Context, r *request) reply {
	p, err := r.payload(s.origin, s.codecs)
	if err != nil {
		return r.noAnswer(err)
	}
	r.wire = p.length
	c := call{http.MethodPost, s.address(r.kind().endpoint()), "application/json", p, r.raw(), r.zstd}
	out, _ := s.do(ctx, r, &c)
	return out
}

// call describes one HTTP request.
type call struct {
	method, url, media string
	body               payload
	raw                int64 // uncompressed bytes of the body
	zstd               bool
}

// do makes one HTTP request for r and classifies the answer. It also returns the answer's text, nil if there was none.
func (s *sender) do(ctx context.Context, r *request, c *call) (reply, []byte) {
	key, err := s.dest.APIKey()
	if err != nil {
		return reply{verdict: refused, kind: KindRefusedKey, summary: err.Error(), hint: hintOf(err)}, nil
	}
	limit := timeout(c.raw)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	body := c.body.open()
	req, err := http.NewRequestWithContext(ctx, c.method, c.url, body)
	if err != nil {
		body.Close()
		return r.noAnswer(err), nil
	}
	req.ContentLength = c.body.length
	req.GetBody = func() (io.ReadCloser, error) { return c.body.open(), nil }
	req.Header.Set("Content-Type", c.media)
	if key != "" {
		req.Header.Set("X-API-Key", key)
	}
	agent := "" // sends none
	if !r.bare {
		agent = s.origin.UserAgent
		s.writer.Load().Set(req.Header)
	}
	req.Header.Set("User-Agent", agent)
	if c.zstd {
		req.Header.Set("Content-Encoding", "zstd")
	}
	// Tells net/http that it may repeat the request on a new connection. An empty value is not sent.
	req.Header["X-Idempotency-Key"] = []string{}
	resp, text, err := s.roundTrip(req) //nolint:bodyclose // roundTrip reads and closes it
	if err != nil {
		return r.noAnswer(err), nil
	}
	out := interpret(resp, text, r.entries(), c.zstd)
	out.judgeOrigin(text, r.speaks, !r.kind().artifact())
	out.forKind(r.kind())
	return out, text
}

// hintOf returns what an error says to do next, if it has a method for that.
func hintOf(err error) string {
	var advised interface{ Advice() string }
	if errors.As(err, &advised) && advised.Advice() != "" {
		return advised.Advice()
	}
	return hintKey
}

// roundTrip makes a request and reads the answer, within limits.
func (s *sender) roundTrip(req *http.Request) (*http.Response, []byte, error) {
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, nil, cause(req.Context(), err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, answerKept))
	if err != nil {
		return nil, nil, cause(req.Context(), err)
	}
	// Best effort: a connection that cannot be drained is closed.
	_, _ = io.CopyN(io.Discard, resp.Body, answerDrained)
	return resp, text, nil
}

// cause unwraps an error of net/http: it removes the URL and returns our own time-out message.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// noAnswer returns the reply for a request that got no answer.
func (r *request) noAnswer(err error) reply {
	if d := r.damaged.Load(); d != nil {
		return reply{verdict: damagedRow, damage: d, summary: d.Error()}
	}
	out := reply{verdict: retryLater, kind: KindUnreachable, summary: err.Error()}
	var unproven interface{ Trouble() (kind, hint string) } // of a transport that does not trust who answers
	if errors.As(err, &unproven) {
		out.kind, out.hint = unproven.Trouble()
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		out.hint = "the server's certificate is not trusted: install its certificate authority, or check server_url"
	}
	return out
}

// probe asks the server for its capabilities, without a key and without entries.
func (s *sender) probe(ctx context.Context) reply {
	limit := timeout(0)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.health, nil)
	if err != nil {
		return reply{verdict: retryLater, kind: KindUnreachable, summary: err.Error()}
	}
	req.Header.Set("User-Agent", "") // none: it may be a plain server
	resp, _, err := s.roundTrip(req) //nolint:bodyclose // roundTrip reads and closes it
	if err != nil {
		return (&request{}).noAnswer(err)
	}
	return reply{
		verdict: acknowledged, status: resp.StatusCode, announced: announcementOf(resp.Header),
		retryAfter: retryAfter(resp.Header, time.Now()),
	}
}
