package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/wire"
)

// mask is POST /api/sessions/{id}/mask: secrets in the caller's own transcript of one machine get tokens, in the lines
// of an epoch, in checkpoints and in files. Nothing else can change, and nobody else may do it, not even an owner.
func (s *Server) mask(w http.ResponseWriter, r *http.Request, who server.Key) error {
	body, err := s.bodies.Read(w, r, s.MaxBody)
	if err != nil {
		return err
	}
	defer body.Release()
	if err := wire.CheckParts(body.Bytes()); err != nil {
		return err
	}
	var q protocol.MaskRequest
	if err := json.Unmarshal(body.Bytes(), &q); err != nil {
		return wire.BadRequest("bad_json", fmt.Sprintf("the body is not what this call takes: %v", err))
	}
	ref := server.Ref{SessionID: r.PathValue("id"), Machine: &q.Machine, Owner: who.User.ID}
	at, err := s.store.sessions.Resolve(r.Context(), server.ScopeOf(who.User), ref)
	if err == nil && at.Owner != who.User.ID {
		err = server.ErrNotFound
	}
	if err != nil {
		return err
	}
	if len(q.Lines) > 0 {
		find := server.Ref{Stream: at.Stream, Epoch: q.Epoch}
		err := s.view(r, who, find, func(_ context.Context, snap server.Snapshot) error {
			for _, e := range snap.Epochs() {
				for i := range q.Lines {
					if e.Name == snap.Session().Epoch {
						q.Lines[i].Epoch = e.ID
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	done, err := s.store.masks.Mask(r.Context(), &server.Masking{Stream: at.Stream, By: who.User.ID, At: time.Now(),
		Lines: q.Lines, Checkpoints: q.Checkpoints, Files: q.Files})
	if errors.Is(err, server.ErrNoToken) {
		return wire.Refuse(http.StatusUnprocessableEntity, "no_token", err.Error())
	}
	if err != nil {
		return err
	}
	if done.Any() {
		s.logOf(r).Info("secrets masked", "session", at.SessionID, "lines", done.Lines, "checkpoints", done.Checkpoints,
			"files", done.Files, "by", who.User.Name)
	}
	s.answer(w, http.StatusOK, done)
	return nil
}

type maskingAnswer struct {
	server.MaskedSession
	User string `json:"user"`
	By   string `json:"by"` // "": the server
	protocol.Masked
}

// maskings is GET /api/maskings: what was masked after it was stored, latest first.
func (s *Server) maskings(r *http.Request, who server.Key) (any, error) {
	list, err := s.store.masks.Maskings(r.Context(), server.ScopeOf(who.User))
	if err != nil {
		return nil, err
	}
	var users []int64
	for i := range list {
		users = append(users, list[i].Owner, list[i].By)
	}
	names, err := s.store.users.UserNames(r.Context(), users)
	if err != nil {
		return nil, err
	}
	return struct {
		Maskings []maskingAnswer `json:"maskings"`
	}{each(list, func(m server.MaskedSession) maskingAnswer {
		return maskingAnswer{m, names[m.Owner], names[m.By], m.Masked}
	})}, nil
}
