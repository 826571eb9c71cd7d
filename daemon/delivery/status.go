package delivery

import (
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
)

// Refused is the obstacle of a server that accepts the key but refuses requests. The other obstacles are
// control.CodeUnreachable and control.CodeRefusedKey.
const Refused = "refused"

// List describes the servers, the user's own first, and sums up what they accepted.
func (s *Servers) List(usage state.Usage) ([]control.Server, *control.Sent) {
	sent := &control.Sent{}
	var own, others []control.Server
	mine, paused := s.ownAndPaused()
	used := s.State.Outbox.Destinations()
	for dest, drainer := range s.drainers() {
		h := drainer.Health()
		server := describe(dest, &h, usage.ByDest[dest].Batches)
		addContact(&server, s.contacts.of(dest), h.LastOKAt)
		if paused {
			server.RetryAt = nil // nothing is tried
		}
		sent.Entries += h.Entries
		sent.Bytes += h.Bytes
		sent.Requests += h.Requests
		if t := server.LastOKAt; t != nil && (sent.LastAt == nil || t.After(*sent.LastAt)) {
			sent.LastAt = t
		}
		if dest == mine {
			own = append(own, server)
		} else if slices.Contains(used, dest) { // list a retired server only while something belongs to it
			others = append(others, server)
		}
	}
	slices.SortFunc(others, func(a, b control.Server) int { return strings.Compare(a.URL, b.URL) })
	return append(own, others...), sent
}

func describe(dest string, h *outbox.Health, batches int64) control.Server {
	return control.Server{
		URL: project.ServerURL(dest), State: h.State, Protocol: h.Protocol, Kind: h.Kind, Detail: h.Detail, Hint: h.Hint,
		RetryAt: TimeOrNil(h.RetryAt), LastOKAt: TimeOrNil(h.LastOKAt),
		Batches: batches, MaxRequest: h.MaxRequest,
		Accepts: h.Accepts.Names(), Items: h.Items, Unwanted: h.Unwanted, Gone: h.Gone,
	}
}

// addContact adds the result of a server's last probe. A server that was well but failed a probe since counts as not
// well: the next request would fail in the same way.
func addContact(server *control.Server, known contact, acknowledged time.Time) {
	at := lastContact(known, acknowledged)
	if server.LastContactAt = TimeOrNil(at); !at.IsZero() {
		server.ContactAge = time.Since(at).Seconds()
	}
	if known.last.At.IsZero() {
		return
	}
	p := known.last
	p.Age, p.At = time.Since(p.At).Seconds(), p.At.UTC()
	server.Probe = &p
	well := server.State == outbox.StateOK || server.State == outbox.StateUnknown
	switch {
	case p.OK && server.State == outbox.StateUnknown:
		server.State = outbox.StateOK
	case !p.OK && well && p.At.After(acknowledged):
		server.State, server.Kind, server.Detail, server.Hint = outbox.StateRetrying, p.Kind, p.Detail, p.Hint
		if p.Kind == outbox.KindRefusedKey || p.Kind == outbox.KindRedirect {
			server.State = outbox.StateRefused
		}
	}
}

// TimeOrNil returns a time in UTC; nil for the zero time.
func TimeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// Obstacle returns what keeps the outbox from its servers: "", control.CodeUnreachable, control.CodeRefusedKey or
// Refused, with a detail and a hint for people. A server without waiting rows that is well is no obstacle.
func (s *Servers) Obstacle() (kind, detail, hint string) {
	usage, own := s.State.Outbox.Usage(), s.Own()
	for dest, drainer := range s.drainers() {
		h := drainer.Health()
		idle := usage.ByDest[dest].Batches == 0 && (h.State == outbox.StateOK || dest != own)
		if idle || s.Retired(dest) {
			continue
		}
		switch {
		case h.Kind == outbox.KindRefusedKey:
			return control.CodeRefusedKey, h.Detail, h.Hint
		case h.State == outbox.StateRetrying || h.State == outbox.StateRefused:
			kind, detail, hint = Refused, h.Detail, h.Hint
			switch h.Kind {
			case outbox.KindUnreachable, outbox.KindServerError, outbox.KindProtocol: // also a gateway that answers 503
				kind = control.CodeUnreachable
			}
		}
	}
	return kind, detail, hint
}
