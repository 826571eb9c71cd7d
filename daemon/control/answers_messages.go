package control

import (
	"context"
	"net/http"
)

func (s *Endpoint) messages(w http.ResponseWriter, r *http.Request) {
	q := MessagesQuery{Session: r.URL.Query().Get("session")}
	p, err := page(r)
	if err == nil && q.Session == "" {
		err = noSessionNamed()
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	if q.Page = p; r.URL.Query().Get("limit") == "" || r.URL.Query().Get("limit") == "0" {
		q.Limit = 0 // all: there are never many
	}
	give(s, w, r, func(ctx context.Context) (Messages, error) { return s.daemon.Messages(ctx, q) })
}

func (s *Endpoint) clearMessages(w http.ResponseWriter, r *http.Request) {
	session := r.URL.Query().Get("session")
	if session == "" {
		s.fail(w, noSessionNamed())
		return
	}
	give(s, w, r, func(ctx context.Context) (ClearResult, error) { return s.daemon.ClearMessages(ctx, session) })
}

func noSessionNamed() *Error {
	return Usage("no session is named", "name one with ?session=")
}
