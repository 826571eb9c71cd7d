package delivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
)

// contactTime is how long a server may take to answer a probe.
const contactTime = time.Second

// contact is the result of the probes of one server.
type contact struct {
	last control.Probe // the last probe
	okAt time.Time     // when the last probe without fault ended; zero: none did
}

// contacts probes servers on behalf of callers that request the status. Several callers share one probe. Safe for
// concurrent use.
type contacts struct {
	limit time.Duration // for an answer; immutable
	fresh time.Duration // how long an answer counts as current: control.ContactFresh, but in tests; immutable

	mu    sync.Mutex
	known map[string]contact       // by destination; guarded by mu
	under map[string]chan struct{} // closed when the probe of a destination has ended; guarded by mu
	next  []string                 // destinations whose probe has not begun; guarded by mu
}

// of returns what is known about a destination.
func (c *contacts) of(dest string) contact {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[dest]
}

// ask requests a probe of a destination; done is closed at its end. begun: nobody else had asked before.
func (c *contacts) ask(dest string) (done <-chan struct{}, begun bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if under, ok := c.under[dest]; ok {
		return under, false
	}
	under := make(chan struct{})
	c.under[dest], c.next = under, append(c.next, dest)
	return under, true
}

// take returns the probes to begin.
func (c *contacts) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.next
	c.next = nil
	return next
}

// ended records the result of a probe.
func (c *contacts) ended(dest string, p control.Probe) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.known[dest]
	now.last = p
	if p.OK {
		now.okAt = p.At
	}
	c.known[dest] = now
	close(c.under[dest])
	delete(c.under, dest)
}

// Probe probes the servers in use whose last answer is older than control.ContactFresh. With wait it returns when the
// probes have ended, at most a second later. Without wait it returns at once, and probes each server at most once per
// ContactFresh. It sends nothing while the user has paused delivery.
func (s *Servers) Probe(ctx context.Context, wait bool) {
	own, paused := s.ownAndPaused()
	if paused {
		return
	}
	used := s.State.Outbox.Destinations()
	var all []<-chan struct{}
	for dest, drainer := range s.drainers() {
		if dest != own && (!slices.Contains(used, dest) || s.Retired(dest)) || !s.silent(dest, drainer, wait) {
			continue
		}
		done, begun := s.contacts.ask(dest)
		if begun {
			s.bell.Ring()
		}
		all = append(all, done)
	}
	if !wait {
		return
	}
	limit := time.NewTimer(s.contacts.limit + s.contacts.limit/4) // in case Run has not begun
	defer limit.Stop()
	for _, done := range all {
		select {
		case <-done:
		case <-limit.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// silent reports whether a server has not answered for control.ContactFresh. Unless waits is set, a server that was
// probed within that time does not count as silent: otherwise it would be probed over and over.
func (s *Servers) silent(dest string, drainer *outbox.Drainer, waits bool) bool {
	known, now := s.contacts.of(dest), time.Now()
	if !waits && now.Sub(known.last.At) < s.contacts.fresh {
		return false
	}
	return now.Sub(lastContact(known, drainer.Health().LastOKAt)) >= s.contacts.fresh
}

// lastContact returns when a server last answered and accepted a request; zero: not since the start.
func lastContact(known contact, acknowledged time.Time) time.Time {
	if known.okAt.After(acknowledged) {
		return known.okAt
	}
	return acknowledged
}

// probeContact probes one server, with the key and the client that deliver to it.
func (s *Servers) probeContact(ctx context.Context, dest string) {
	p := s.contactOf(ctx, dest)
	p.At = time.Now()
	s.contacts.ended(dest, p)
}

// contactOf asks a server who owns the key. A plain server has no such call: any answer except a refusal is enough.
func (s *Servers) contactOf(ctx context.Context, dest string) control.Probe {
	reader := s.Reader(dest)
	key, err := reader.Key()
	if err != nil {
		return keyTrouble(err)
	}
	limited, cancel := context.WithTimeout(ctx, s.contacts.limit)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, http.MethodGet, reader.Base.JoinPath("api", "me").String(), nil)
	if err != nil {
		return control.Probe{Kind: outbox.KindUnreachable, Detail: err.Error()}
	}
	agent := "" // sends none: a plain server gets what its protocol names
	if s.SpeaksExtension(dest) {
		agent = reader.Agent
	}
	req.Header.Set("User-Agent", agent)
	if key != "" {
		req.Header.Set("X-API-Key", key)
	}
	answer, err := reader.HTTP.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*protocol.UnprovenError](err); ok {
			kind, hint := e.Trouble()
			return control.Probe{Kind: kind, Detail: e.Error(), Hint: hint}
		}
		return control.Probe{Kind: outbox.KindUnreachable, Detail: s.contacts.silence(limited, err)}
	}
	defer answer.Body.Close()
	// Best effort: a connection whose answer cannot be read is closed.
	_, _ = io.CopyN(io.Discard, answer.Body, contactAnswer)
	return judgeContact(answer, s.SpeaksExtension(dest))
}

// contactAnswer limits how many bytes of a probe's answer are read, so that the connection can be reused.
const contactAnswer = 64 << 10

// judgeContact interprets an answer. speaks: the server has announced the extension before.
func judgeContact(answer *http.Response, speaks bool) control.Probe {
	p := control.Probe{Detail: "answered " + answer.Status}
	switch code := answer.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		p.Kind = outbox.KindRefusedKey
	case code >= 300 && code < 400:
		p.Kind, p.Detail = outbox.KindRedirect, p.Detail+" to "+outbox.RedirectedTo(answer.Header)
	case code >= 500:
		p.Kind = outbox.KindServerError
	case speaks && !outbox.Announced(answer.Header):
		p.Kind, p.Detail = outbox.KindProtocol, p.Detail+", but not as the ccship-server that was there before"
	default:
		return control.Probe{OK: true}
	}
	return p
}

// keyTrouble returns the result of a probe whose key cannot be read.
func keyTrouble(err error) control.Probe {
	p := control.Probe{Kind: outbox.KindRefusedKey, Detail: err.Error()}
	var mistake *config.Error
	if errors.As(err, &mistake) {
		p.Hint = mistake.Hint
	}
	return p
}

// silence explains why there was no answer.
func (c *contacts) silence(ctx context.Context, err error) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Sprintf("no answer within %s", c.limit)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err.Error()
}
