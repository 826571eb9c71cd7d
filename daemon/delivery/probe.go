package delivery

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
	"github.com/ccship/ccship/protocol"
)

// hintURL shows the form of a server URL.
const hintURL = "a server URL looks like https://ccship.example.org or http://127.0.0.1:5000"

// probeTime is how long a server may take to answer one request of a probe.
const probeTime = 10 * time.Second

// Probed describes a server that accepts conversations with the given key.
type Probed struct {
	Extension bool   // the server speaks the extension, so every byte can be verified
	Version   string // of ccship-server; "" for other servers
	// Skew is the least by which the server's clock is ahead of this one; 0 when the answer proves none.
	Skew time.Duration
}

// Candidate is a server that a user wants to use.
type Candidate struct {
	Server string // its URL
	Key    string // "": none
	Agent  string // User-Agent
	Proven bool   // a server with the proof was there before, so the answering server must prove itself over plain HTTP
}

// CandidateOf returns the server of a configuration.
func CandidateOf(c *config.Config, server, key string) Candidate {
	proven := c.Protocol != "plain" && protocol.ProvenServers{Path: c.ProvenServersFile()}.Has(server)
	return Candidate{Server: server, Key: key, Agent: "ccship/" + c.Version, Proven: proven}
}

// Probe finds out whether a server can be used with a key. It sends nothing of any transcript: a server
// that speaks the extension is asked for its sessions, any other gets a request without entries. Over plain HTTP the
// key is shown to a server that proves to know it, and to a plain one. Errors are
// *control.Error (CodeUnreachable, CodeRefusedKey, or a kind of trouble as status shows it), and *config.Error for a
// URL that is not one.
func Probe(ctx context.Context, c Candidate) (Probed, error) {
	base, name, err := outbox.NormalizeURL(c.Server)
	if err != nil {
		return Probed{}, &config.Error{Message: err.Error(), Hint: hintURL}
	}
	shared := outbox.NewClient(1)
	defer shared.CloseIdleConnections()
	p := probe{base: base, name: name, key: c.Key, agent: c.Agent, proven: c.Proven}
	p.client = protocol.NewProvenClient(shared, base, name, func() bool { return p.proven })
	defer p.client.CloseIdleConnections()
	return p.run(ctx)
}

// Greet asks who answers at a server's URL, without a key: a server answers, and it is a ccship-server.
func Greet(ctx context.Context, server string) (there, ours bool) {
	base, name, err := outbox.NormalizeURL(server)
	if err != nil {
		return false, false
	}
	p := probe{base: base, name: name, client: outbox.NewClient(1)}
	defer p.client.CloseIdleConnections()
	answer, _, err := p.ask(ctx, http.MethodGet, "healthz", "") //nolint:bodyclose // ask closes it
	return err == nil, err == nil && outbox.Announced(answer.Header)
}

// probe is the server that Probe examines.
type probe struct {
	base             *url.URL
	name, key, agent string
	proven           bool // it must prove itself
	client           *http.Client
}

func (p *probe) run(ctx context.Context) (Probed, error) {
	var found Probed
	sent := time.Now()
	//nolint:bodyclose // ask closes it
	health, text, err := p.ask(ctx, http.MethodGet, "healthz", "")
	if err != nil {
		return found, err
	}
	found.Skew = skew(health.Header.Get("Date"), sent, time.Now())
	if found.Extension = outbox.Announced(health.Header); found.Extension {
		p.proven = true
		var said struct{ Version string }
		if json.Unmarshal(text, &said) == nil {
			found.Version = said.Version
		}
		//nolint:bodyclose // ask closes it
		answer, text, err := p.ask(ctx, http.MethodGet, "api/sessions?limit=1", "")
		if err != nil {
			return found, err
		}
		return found, p.judge(answer, text, answer.StatusCode == http.StatusOK)
	}
	//nolint:bodyclose // ask closes it
	answer, text, err := p.ask(ctx, http.MethodPost, "api/conversations",
		`{"project_hash":"","session_id":"ccship-probe","entries":[]}`)
	if err != nil {
		return found, err
	}
	found.Extension = outbox.Announced(answer.Header)
	var said struct{ Success *bool }
	is := json.Unmarshal(text, &said) == nil && said.Success != nil
	// A server may refuse a request without entries; by then it has checked the key.
	rejects := answer.StatusCode == http.StatusBadRequest || answer.StatusCode == http.StatusUnprocessableEntity
	return found, p.judge(answer, text, answer.StatusCode/100 == 2 && is || rejects)
}

// skew returns the least by which the clock that dated an answer is ahead of the local clock, which measured when the
// request was sent and the answer received. A date has whole seconds, rounded down.
func skew(date string, sent, received time.Time) time.Duration {
	from, err := http.ParseTime(date)
	switch to := from.Add(time.Second); {
	case err != nil:
		return 0
	case from.After(received):
		return from.Sub(received)
	case to.Before(sent):
		return to.Sub(sent)
	}
	return 0
}

// ask makes one request. An error means that there was no answer.
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
	agent := "" // sends none: a plain server gets what its protocol names
	if p.proven {
		agent = p.agent
	}
	req.Header.Set("User-Agent", agent)
	if p.key != "" && path != "healthz" {
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
	if unproven, ok := errors.AsType[*protocol.UnprovenError](err); ok {
		return p.unproven(unproven)
	}
	if busy, ok := errors.AsType[*protocol.ProofBusyError](err); ok {
		return p.busy(fmt.Sprintf("%d %s", busy.Status, http.StatusText(busy.Status)))
	}
	return control.Unreachable("the server at "+p.name+" cannot be reached: "+err.Error(),
		"check the address and that the server is running")
}

// unproven is the error for a server that does not prove to know the key. One that has no such key says so.
func (p *probe) unproven(e *protocol.UnprovenError) error {
	if e.UnknownKey {
		return p.refused("401 Unauthorized")
	}
	return control.NewError(outbox.KindUnproven, e.Error(), e.Hint())
}

// refused returns the error for a server that does not take the key.
func (p *probe) refused(status string) *control.Error {
	words := " rejects the API key ("
	if p.key == "" {
		words = " requires a key ("
	}
	return control.NewError(control.CodeRefusedKey, "the server at "+p.name+words+status+")",
		"`ccship-server key create --name NAME`, on the server, makes a key that it accepts")
}

// busy returns the error for a server that cannot answer now.
func (p *probe) busy(status string) *control.Error {
	return control.Unreachable("the server at "+p.name+" cannot answer right now ("+status+")", "check the server's log")
}

// judge is the error that an answer amounts to, nil when the server can be used.
func (p *probe) judge(answer *http.Response, text []byte, usable bool) error {
	if usable {
		return nil
	}
	where, code := p.name, answer.StatusCode
	e := control.NewError(outbox.KindProtocol, fmt.Sprintf("the program at %s does not accept conversations (%s)", where,
		answer.Status),
		"check the address: another program may be listening there")
	switch {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return p.refused(answer.Status)
	case code >= 300 && code < 400:
		e.Code, e.Message = outbox.KindRedirect, fmt.Sprintf("the server at %s redirects to %s", where,
			outbox.RedirectedTo(answer.Header))
		e.Hint = "use that address instead"
	case code >= 500 || code == http.StatusTooManyRequests:
		return p.busy(answer.Status)
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed:
		e.Code = outbox.KindNotFound
	case len(text) == 0:
		e.Message = fmt.Sprintf("the program at %s is not a server for conversations (%s, empty answer)", where,
			answer.Status)
	}
	return e
}
