package api

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/wire"
)

// hash is a sha256 in hexadecimal digits.
type hash [32]byte

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *hash) UnmarshalText(text []byte) error {
	if n, err := hex.Decode(h[:], text[:min(len(text), 2*len(h))]); err != nil || n != len(h) || len(text) != 2*n {
		return errors.New("not a sha256 of 64 hexadecimal digits")
	}
	return nil
}

// maskRequest names secrets of one stream, and the tokens that replace them.
type maskRequest struct {
	Machine string `json:"machine"`
	Epoch   string `json:"epoch"` // of the lines
	Lines   []struct {
		Generation int64       `json:"generation"`
		Line       int64       `json:"line"`
		SHA256     hash        `json:"sha256"`
		Tokens     []maskToken `json:"tokens"`
	} `json:"lines"`
	Checkpoints []struct {
		ID     string      `json:"id"`
		SHA256 hash        `json:"sha256"`
		Tokens []maskToken `json:"tokens"`
	} `json:"checkpoints"`
	Files []struct {
		SHA256 hash        `json:"sha256"`
		Tokens []maskToken `json:"tokens"`
	} `json:"files"`
}

type maskToken struct {
	Start int    `json:"start"`
	Text  string `json:"text"`
}

func serverTokens(list []maskToken) (out []server.Token) {
	for _, t := range list {
		out = append(out, server.Token(t))
	}
	return out
}

// masking is what the request asks the store to mask. epoch is the id of the request's epoch.
func (q *maskRequest) masking(stream, epoch int64, who server.Key) *server.Masking {
	m := &server.Masking{Stream: stream, By: who.User.ID, At: time.Now()}
	for _, l := range q.Lines {
		m.Lines = append(m.Lines, server.LineMask{Epoch: epoch, Generation: l.Generation, Line: l.Line, SHA256: l.SHA256,
			Tokens: serverTokens(l.Tokens)})
	}
	for _, c := range q.Checkpoints {
		m.Checkpoints = append(m.Checkpoints,
			server.CheckpointMask{ID: c.ID, SHA256: c.SHA256, Tokens: serverTokens(c.Tokens)})
	}
	for _, f := range q.Files {
		m.Files = append(m.Files, server.FileMask{SHA256: f.SHA256, Tokens: serverTokens(f.Tokens)})
	}
	return m
}

type maskedAnswer struct {
	Lines       int64 `json:"lines"`
	Checkpoints int64 `json:"checkpoints"`
	Files       int64 `json:"files"`
}

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
	var q maskRequest
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
	var epoch int64
	if len(q.Lines) > 0 {
		find := server.Ref{Stream: at.Stream, Epoch: q.Epoch}
		err := s.view(r, who, find, func(_ context.Context, snap server.Snapshot) error {
			for _, e := range snap.Epochs() {
				if e.Name == snap.Session().Epoch {
					epoch = e.ID
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	done, err := s.store.masks.Mask(r.Context(), q.masking(at.Stream, epoch, who))
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
	s.answer(w, http.StatusOK, maskedAnswer(done))
	return nil
}

type maskingAnswer struct {
	SessionID string    `json:"session_id"`
	User      string    `json:"user"`
	Machine   string    `json:"machine"`
	By        string    `json:"by"` // "": the server
	At        time.Time `json:"at"`
	maskedAnswer
}

// maskings is GET /api/maskings: what was masked after it was stored, latest first.
func (s *Server) maskings(w http.ResponseWriter, r *http.Request, who server.Key) error {
	list, err := s.store.masks.Maskings(r.Context(), server.ScopeOf(who.User))
	if err != nil {
		return err
	}
	var users []int64
	for i := range list {
		users = append(users, list[i].Owner, list[i].By)
	}
	names, err := s.store.users.UserNames(r.Context(), users)
	if err != nil {
		return err
	}
	s.answer(w, http.StatusOK, struct {
		Maskings []maskingAnswer `json:"maskings"`
	}{each(list, func(m server.MaskedSession) maskingAnswer {
		return maskingAnswer{m.SessionID, names[m.Owner], m.Machine, names[m.By], m.At, maskedAnswer(m.Masked)}
	})})
	return nil
}
