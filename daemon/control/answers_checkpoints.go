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
