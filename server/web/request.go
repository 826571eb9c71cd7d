package web

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

// parseStream parses the address of a session: its newest generation.
func parseStream(r *http.Request) thread.Stream {
	q := r.URL.Query()
	s := thread.Stream{ID: r.PathValue("id"), User: page.Number(q.Get(thread.UserParam), 0), Generation: -1}
	if q.Has("machine") {
		m := q.Get("machine")
		s.Machine = &m
	}
	return s
}

// requested parses the address of a session, with the epoch and the generation that it asks for.
func requested(r *http.Request) thread.Stream {
	s, q := parseStream(r), r.URL.Query()
	s.Epoch, s.Generation = q.Get("epoch"), page.Number(q.Get("generation"), -1)
	if s.Machine == nil && s.User == 0 { // the id alone names it
		s.Short, _, _ = strings.Cut(s.ID, "/")
	}
	return s
}

// open pins the requested stream and view while fn runs. For the reader, what is not visible does not exist.
func (v *Viewer) open(ctx context.Context, who server.Login, s thread.Stream,
	fn func(server.Snapshot, server.View) error) error {
	return openView(ctx, v.store.View, server.ScopeOf(who.User), s, fn)
}

// opener opens a snapshot of a stream that a scope lets see.
type opener func(ctx context.Context, scope server.Scope, ref server.Ref) (server.Snapshot, error)

// openView pins a view of a stream while fn runs.
func openView(ctx context.Context, open opener, scope server.Scope, s thread.Stream,
	fn func(server.Snapshot, server.View) error) (err error) {
	snap, err := open(ctx, scope, s.Ref())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	view, err := s.View(snap)
	if err != nil {
		return err
	}
	return fn(snap, view)
}

// session returns the session of a stream, which must have the generation that the stream names.
func (v *Viewer) session(ctx context.Context, who server.Login, s thread.Stream) (x server.Session, err error) {
	err = v.open(ctx, who, s, func(snap server.Snapshot, _ server.View) error {
		x = snap.Session()
		return nil
	})
	return x, err
}

// ownerOf returns whose session a listing that names one is about: the address says it, or there is only one.
func (v *Viewer) ownerOf(r *http.Request, who server.Login) (int64, error) {
	q := r.URL.Query()
	ref := server.Ref{SessionID: q.Get("session"), Owner: page.Number(q.Get(thread.UserParam), 0)}
	if ref.SessionID == "" || ref.Owner != 0 {
		return ref.Owner, nil
	}
	x, err := v.store.Resolve(r.Context(), server.ScopeOf(who.User), ref)
	if errors.Is(err, server.ErrNotFound) {
		return 0, nil
	}
	return x.Owner, err
}
