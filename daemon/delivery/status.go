package delivery

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
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

// Rows lists a page of what waits in the outbox, by transcript and server. next is the offset of the next page; 0 when
// there is none.
func Rows(ctx context.Context, db *state.DB, p control.Page) (rows []control.OutboxRow, next int, err error) {
	queued := db.Outbox.Queued()
	from := min(p.Offset, len(queued))
	to := min(from+p.Limit, len(queued))
	if to < len(queued) {
		next = to
	}
	queued = queued[from:to]
	var ids []tail.FileID
	for _, q := range queued {
		ids = append(ids, q.File)
	}
	facts, err := db.Files.RoutingsOf(ctx, ids)
	if err != nil {
		return nil, 0, err
	}
	rows = []control.OutboxRow{}
	for _, q := range queued {
		stream, kind := facts[q.File].Stream, "lines"
		if q.Blobs {
			kind = "blobs"
		}
		rows = append(rows, control.OutboxRow{
			Server: project.ServerURL(q.Dest), Session: stream.SessionID, Path: stream.Path, Kind: kind,
			Batches: q.Batches, Entries: q.Entries, Bytes: q.Raw, Stored: q.Bytes, OldestAt: q.Oldest.UTC(),
		})
	}
	return rows, next, nil
}

// Retired reports whether a destination gets no new lines: it is neither the user's own server nor one that a trusted
// project names. What was queued for it is still sent.
func (s *Servers) Retired(dest string) bool {
	_, dir, ofProject := project.SplitDestination(dest)
	if !ofProject {
		return dest != s.Own()
	}
	return !s.Owner.TrustsProject(dir)
}

// RetiredServers returns the retired servers with waiting rows.
func (s *Servers) RetiredServers(usage state.Usage) (list []control.RetiredServer) {
	byURL := map[string]control.RetiredServer{}
	for dest, waiting := range usage.ByDest {
		if waiting.Batches > 0 && s.Retired(dest) {
			f := byURL[project.ServerURL(dest)]
			f.URL, f.Batches, f.Entries = project.ServerURL(dest), f.Batches+waiting.Batches, f.Entries+waiting.Entries
			byURL[f.URL] = f
		}
	}
	for _, f := range byURL {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b control.RetiredServer) int { return strings.Compare(a.URL, b.URL) })
	return list
}

// DropServer removes what waits for a retired server, with its dead letters.
func (s *Servers) DropServer(ctx context.Context, req control.DropServerRequest) (control.DropServerResult, error) {
	a := control.DropServerResult{SchemaVersion: control.SchemaVersion, Server: req.Server}
	_, url, err := outbox.NormalizeURL(req.Server)
	if err != nil {
		return a, control.NewError(control.CodeConfig, err.Error(), hintURL)
	}
	var dests []string
	for _, dest := range s.State.Outbox.KnownDestinations() {
		if !project.SameServer(project.ServerURL(dest), url) {
			continue
		}
		if !s.Retired(dest) {
			return a, control.Usage("lines still go to "+url+": what waits for it is not dropped",
				"`ccship exclude` leaves projects out, `ccship outbox drop` removes dead letters")
		}
		dests = append(dests, dest)
	}
	dropped, err := s.State.Outbox.DropDestinations(ctx, dests)
	if err != nil {
		return a, err
	}
	a.Rows, a.Entries, a.Letters = dropped.Rows, dropped.Entries, dropped.Dead
	if dropped.Rows+dropped.Dead == 0 {
		return a, control.Usage("nothing waits for "+url, "`ccship outbox list` names the servers")
	}
	s.Log.Info("what waited for a retired server was dropped", "server", url, "rows", a.Rows, "entries", a.Entries)
	return a, nil
}

// clientOf returns a client for one server. If a server with a store was there before, the client shows a key over
// plain HTTP only to a server that proves to know it. base is the server's URL. The caller holds mu.
func (s *Servers) clientOf(dest string, base *url.URL) *http.Client {
	if client := s.clients[dest]; client != nil {
		return client
	}
	if _, ok := s.Client.Transport.(*http.Transport); !ok { // not made by outbox.NewClient
		return s.Client
	}
	own := protocol.NewProvenClient(s.Client, base, project.ServerURL(dest), s.knownBefore(dest))
	s.clients[dest] = own
	return own
}

// knownBefore returns whether a server with a store of its own was at a destination, in this run or by the state.
// A plain server has none, so it cannot be distinguished from another. What is known is noted for commands that do not
// ask the daemon.
func (s *Servers) knownBefore(dest string) func() bool {
	server := project.ServerURL(dest)
	var noted atomic.Bool
	return func() bool {
		if s.Plain {
			return false
		}
		had, err := s.hadStore(dest)
		if err != nil { // what cannot be read may have been there
			return true
		}
		if had && !noted.Swap(true) {
			if err := s.Proven.Add(server); err != nil {
				s.Log.Warn("commands without the daemon do not know the server yet", "server", server, "err", err)
			}
		}
		return had || s.Proven.Has(server)
	}
}

// noteProven notes the servers that are known by now.
func (s *Servers) noteProven() {
	for dest := range s.drainers() {
		_ = s.knownBefore(dest)()
	}
}

func (s *Servers) hadStore(dest string) (bool, error) {
	if drainer := s.drainer(dest); drainer != nil {
		known, _, err := drainer.Ledger(context.Background())
		return known.Store != "", err
	}
	learned, err := s.State.Outbox.Learned(context.Background(), dest)
	return learned.Ledger.Store != "", err
}

// closeIdle closes connections that no request uses.
func (s *Servers) closeIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Client.CloseIdleConnections()
	for _, client := range s.clients {
		client.CloseIdleConnections()
	}
}
