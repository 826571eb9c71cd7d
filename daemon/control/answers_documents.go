package control

import (
	"context"
	"net/http"
)

func (s *Endpoint) documents(w http.ResponseWriter, r *http.Request) {
	session := r.URL.Query().Get("session")
	if session == "" {
		s.fail(w, noSessionNamed())
		return
	}
	give(s, w, r, func(ctx context.Context) (Documents, error) { return s.daemon.Documents(ctx, session) })
}

func (s *Endpoint) init(w http.ResponseWriter, r *http.Request) {
	q := InitQuery{Session: r.URL.Query().Get("session"), Cwd: r.URL.Query().Get("cwd")}
	if q.Session == "" {
		s.fail(w, noSessionNamed())
		return
	}
	give(s, w, r, func(ctx context.Context) (Init, error) { return s.daemon.Init(ctx, q) })
}
