package control

import (
	"context"
	"net/http"
)

func (s *Endpoint) checkpoints(w http.ResponseWriter, r *http.Request) {
	p, err := page(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	q := CheckpointsQuery{Session: r.URL.Query().Get("session"), Page: p}
	give(s, w, r, func(ctx context.Context) (Checkpoints, error) { return s.daemon.Checkpoints(ctx, q) })
}

func (s *Endpoint) checkpoint(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	if id == "" {
		s.fail(w, Usage("no checkpoint is named", "name one with ?id="))
		return
	}
	give(s, w, r, func(ctx context.Context) (CheckpointAnswer, error) { return s.daemon.Checkpoint(ctx, id) })
}

func (s *Endpoint) budgets(w http.ResponseWriter, r *http.Request) {
	session := r.URL.Query().Get("session")
	give(s, w, r, func(ctx context.Context) (Budgets, error) { return s.daemon.Budgets(ctx, session) })
}

func (s *Endpoint) documents(w http.ResponseWriter, r *http.Request) {
	session := r.URL.Query().Get("session")
	if session == "" {
		s.fail(w, noSessionNamed())
		return
	}
	give(s, w, r, func(ctx context.Context) (Documents, error) { return s.daemon.Documents(ctx, session) })
}

func (s *Endpoint) init(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	q := InitQuery{Session: values.Get("session"), Cwd: values.Get("cwd"), Confirm: values.Get("confirm") == "true",
		Title: values.Get("title"), Source: values.Get("source")}
	if q.Session == "" {
		s.fail(w, noSessionNamed())
		return
	}
	give(s, w, r, func(ctx context.Context) (Init, error) { return s.daemon.Init(ctx, q) })
}

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
