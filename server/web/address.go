package web

import (
	"context"
	"strings"

	"github.com/ccship/ccship/server"
)

// shortNamer knows short names of sessions.
type shortNamer interface {
	ShortNames(ctx context.Context, scope server.Scope, ids []string) (map[string]string, error)
}

// shorten sets the short names of sessions, with which addresses are made that people can read and send. An agent has
// that of its session.
func shorten(ctx context.Context, st shortNamer, scope server.Scope, sessions ...*server.Session) error {
	ids := make([]string, len(sessions))
	for i, x := range sessions {
		ids[i], _, _ = strings.Cut(x.SessionID, "/")
	}
	names, err := st.ShortNames(ctx, scope, ids)
	for i, x := range sessions {
		x.Short = names[ids[i]]
	}
	return err
}

// findShort lists sessions with their short names.
func (p *homePages) findShort(ctx context.Context, scope server.Scope, q server.SessionQuery) (server.Found, error) {
	found, err := p.store.Find(ctx, scope, q)
	if err != nil {
		return found, err
	}
	sessions := make([]*server.Session, len(found.List))
	for i := range found.List {
		sessions[i] = &found.List[i].Session
	}
	return found, shorten(ctx, p.store, scope, sessions...)
}
