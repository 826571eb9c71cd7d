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
	"time"
)

// sender makes requests of one destination and understands the answers. Safe for concurrent use.
type sender struct {
	dest   *Destination
	origin *Origin
	client *http.Client
	codecs *codecs
	open   func(root, path string) (Content, error) // blobs; nil: there are none
	health string                                   // URL of the probe
}

// address is where a request goes: path elements below the base.
func (s *sender) address(elements ...string) string {
	return s.dest.URL.JoinPath(append([]string{"api"}, elements...)...).String()
}

// place is the path element of the address that rows of a kind go to.
func (k Kind) place() string {
	if k.beside() {
		return k.announced()
	}
	return "conversations"
}

func newSender(d *Drainer, c *codecs) *sender {
	own := *d.Client
	own.CheckRedirect = SameServer
	return &sender{
		dest: &d.dest, origin: &d.origin, client: &own, codecs: c, open: d.OpenBlob,
		health: d.dest.URL.JoinPath("healthz").String(),
	}
}

// NewClient is an HTTP client for drainers and for whoever asks the same servers: it keeps up to idle connections to
// each, follows redirects by SameServer, and leaves time-outs to the requests.
func NewClient(idle int) *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Client{CheckRedirect: SameServer, Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: idle, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, DisableCompression: true,
	}}
}

// SameServer is the redirect policy of every client that shows a key (http.Client.CheckRedirect): it follows only
// redirects that keep method, body and server, for net/http strips only the headers it knows. A step up to https is
// the same server.
func SameServer(req *http.Request, via []*http.Request) error {
	from, to := via[0].URL, req.URL
	kept := req.Response.StatusCode == http.StatusTemporaryRedirect || req.Response.StatusCode == http.StatusPermanentRedirect
	same := normalHost(from) == normalHost(to) &&
		(from.Scheme == to.Scheme || from.Scheme == "http" && to.Scheme == "https")
	if !kept || len(via) > 5 || !same {
		return http.ErrUseLastResponse
	}
	return nil
}

// timeout is how long an answer to so many uncompressed bytes may take.
func timeout(raw int64) time.Duration {
	return 30*time.Second + time.Duration(raw>>20)*time.Second
}

// send makes one POST. What it returns says all there is to do about it; it never returns an error.
func (s *sender) send(ctx context.Context, r *request) reply {
	p, err := r.payload(s.origin, s.codecs)
	if err != nil {
		return r.unsent(err)
	}
	c := call{method: http.MethodPost, url: s.address(r.kind().place()), media: "application/json", body: p, raw: r.raw(), encoding: r.encoding}
	out, _ := s.ask(ctx, r, &c)
	return out
}

// call is one HTTP request to be made.
type call struct {
	method, url, media string
	body               payload
	raw                int64 // uncompressed bytes of the body
	encoding           encoding
}

// ask makes one HTTP request for r, and classifies the answer. The text is the answer's, nil when there was none.
func (s *sender) ask(ctx context.Context, r *request, c *call) (reply, []byte) {
	key, err := s.dest.APIKey()
	if err != nil {
		return reply{
			verdict: refuse, kind: KindRefusedKey, summary: "read API key: " + err.Error(),
			hint: "put a key that this server knows into the API key file",
		}, nil
	}
	limit := timeout(c.raw)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	body := c.body.open()
	req, err := http.NewRequestWithContext(ctx, c.method, c.url, body)
	if err != nil {
		body.Close()
		return r.unsent(err), nil
	}
	req.ContentLength = c.body.length
	req.GetBody = func() (io.ReadCloser, error) { return c.body.open(), nil }
	req.Header.Set("Content-Type", c.media)
	req.Header.Set("User-Agent", s.origin.UserAgent)
	if key != "" {
		req.Header.Set("X-API-Key", key)
	}
	if c.encoding != identity {
		req.Header.Set("Content-Encoding", string(c.encoding))
	}
	// Tells net/http that a connection found closed may be replaced: a repeat changes nothing. Not sent when empty.
	req.Header["X-Idempotency-Key"] = []string{}
	resp, text, err := s.do(req)
	if err != nil {
		return r.unsent(err), nil
	}
	out := understand(resp, text, r.entries(), c.encoding)
	out.about(r.kind())
	return out, text
}

// do makes a request and reads the answer, within limits.
func (s *sender) do(req *http.Request) (*http.Response, []byte, error) {
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

// cause finds the words in an error of net/http: without the URL, and with our own reason for giving up.
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

// unsent is the reply to a request that got no answer.
func (r *request) unsent(err error) reply {
	if d := r.damaged.Load(); d != nil {
		return reply{verdict: broken, damage: d, summary: d.Error()}
	}
	out := reply{verdict: again, kind: KindUnreachable, summary: err.Error()}
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		out.hint = "the server's certificate is not trusted here: add its authority to the system's, or check server_url"
	}
	return out
}

// probe asks the server what it speaks, without a key and without entries.
func (s *sender) probe(ctx context.Context) reply {
	limit := timeout(0)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.health, nil)
	if err != nil {
		return reply{verdict: again, kind: KindUnreachable, summary: err.Error()}
	}
	req.Header.Set("User-Agent", s.origin.UserAgent)
	resp, _, err := s.do(req)
	if err != nil {
		return reply{verdict: again, kind: KindUnreachable, summary: err.Error()}
	}
	return reply{verdict: taken, status: resp.StatusCode, announced: announcementOf(resp.Header)}
}
