package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/outbox"
)

// probeTime is how long a server may take to answer one question of a probe.
const probeTime = 10 * time.Second

// ServerKind is what a probe found out about a server that takes conversations with the key it was shown.
type ServerKind struct {
	Extension bool   // it speaks the extension: every byte can be proved
	Version   string // of ccship-server; "" of others
	// Skew is how far the server's clock is ahead of this one's, as far as its answer proves; 0 when it says nothing.
	Skew time.Duration
}

// ProbeServer asks a server, by its normalised URL, whether it can be used with a key ("" for none), and sends nothing
// of any transcript: one that speaks the extension is asked for its sessions, another is sent a request without entries.
// Errors are *control.Error: CodeUnreachable, CodeRefusedKey, or a kind of trouble as status shows them.
func ProbeServer(ctx context.Context, server, key, userAgent string) (ServerKind, error) {
	base, _, err := outbox.NormalizeURL(server)
	if err != nil {
		return ServerKind{}, &config.Error{Message: err.Error(), Hint: "a server URL looks like https://ccship.example.org or http://127.0.0.1:5000"}
	}
	p := probe{base: base, key: key, agent: userAgent, client: outbox.NewClient(1)}
	defer p.client.CloseIdleConnections()
	return p.run(ctx)
}

// probe is one look at a server.
type probe struct {
	base       *url.URL
	key, agent string
	client     *http.Client
}

func (p *probe) run(ctx context.Context) (ServerKind, error) {
	var kind ServerKind
	asked := time.Now()
	health, text, err := p.ask(ctx, http.MethodGet, "healthz", "")
	if err != nil {
		return kind, err
	}
	kind.Skew = skew(health.Header.Get("Date"), asked, time.Now())
	if kind.Extension = outbox.Announced(health.Header); kind.Extension {
		var said struct{ Version string }
		if json.Unmarshal(text, &said) == nil {
			kind.Version = said.Version
		}
		answer, text, err := p.ask(ctx, http.MethodGet, "api/sessions?limit=1", "")
		if err != nil {
			return kind, err
		}
		return kind, p.judge(answer, text, answer.StatusCode == http.StatusOK)
	}
	answer, text, err := p.ask(ctx, http.MethodPost, "api/conversations", `{"project_hash":"","session_id":"ccship-probe","entries":[]}`)
	if err != nil {
		return kind, err
	}
	kind.Extension = outbox.Announced(answer.Header)
	var said struct{ Success *bool }
	is := json.Unmarshal(text, &said) == nil && said.Success != nil
	// A server may not care for a request without entries: it has looked at the key and at the request then.
	picky := answer.StatusCode == http.StatusBadRequest || answer.StatusCode == http.StatusUnprocessableEntity
	return kind, p.judge(answer, text, answer.StatusCode/100 == 2 && is || picky)
}

// skew is how far the clock that dated an answer is ahead, at least, of the one that measured when it was asked for and
// when it came. A date is of whole seconds, cut.
func skew(date string, asked, came time.Time) time.Duration {
	from, err := http.ParseTime(date)
	switch to := from.Add(time.Second); {
	case err != nil:
		return 0
	case from.After(came):
		return from.Sub(came)
	case to.Before(asked):
		return to.Sub(asked)
	}
	return 0
}

// ask makes one request. An error: there was no answer.
func (p *probe) ask(ctx context.Context, method, path, body string) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	name, query, _ := strings.Cut(path, "?")
	to := p.base.JoinPath(name)
	to.RawQuery = query
	req, err := http.NewRequestWithContext(ctx, method, to.String(), strings.NewReader(body))
	if err != nil {
		return nil, nil, fmt.Errorf("ask server: %w", err)
	}
	req.Header.Set("User-Agent", p.agent)
	if p.key != "" {
		req.Header.Set("X-API-Key", p.key)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	answer, err := p.client.Do(req)
	if err == nil {
		defer answer.Body.Close()
		var text []byte
		if text, err = io.ReadAll(io.LimitReader(answer.Body, 64<<10)); err == nil {
			return answer, text, nil
		}
	}
	return nil, nil, p.unreachable(ctx, err)
}

func (p *probe) unreachable(ctx context.Context, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s", probeTime)
	} else if ctx.Err() != nil {
		return ctx.Err()
	}
	return control.Unreachable("the server at "+p.base.String()+" cannot be reached: "+err.Error(),
		"check the address, and that the server runs")
}

// judge is the error in an answer, nil when it is fine.
func (p *probe) judge(answer *http.Response, text []byte, fine bool) error {
	if fine {
		return nil
	}
	where, code := p.base.String(), answer.StatusCode
	e := control.NewError(outbox.KindProtocol, fmt.Sprintf("what answers at %s takes no conversations (%s)", where, answer.Status),
		"check the address: another program may answer there")
	switch {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		e.Code, e.Message = control.CodeRefusedKey, "the server at "+where+" refuses the key ("+answer.Status+")"
		e.Hint = "`ccship-server key create` makes a key that it knows"
		if p.key == "" {
			e.Message = "the server at " + where + " wants a key (" + answer.Status + ")"
		}
	case code >= 300 && code < 400:
		e.Code, e.Message = outbox.KindRedirect, fmt.Sprintf("the server at %s says it is at %q now", where, answer.Header.Get("Location"))
		e.Hint = "name that address instead"
	case code >= 500 || code == http.StatusTooManyRequests:
		e.Code, e.Message, e.Retryable = control.CodeUnreachable, "the server at "+where+" cannot answer now ("+answer.Status+")", true
		e.Hint = "look at the server's log"
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed:
		e.Code = outbox.KindNotFound
	case len(text) == 0:
		e.Message = fmt.Sprintf("what answers at %s is no server for conversations (%s, empty)", where, answer.Status)
	}
	return e
}
