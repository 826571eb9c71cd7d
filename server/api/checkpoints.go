package api

import (
	"net/http"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/wire"
)

// putCheckpoints is POST /api/checkpoints.
func (s *Server) putCheckpoints(w http.ResponseWriter, r *http.Request, who server.Key) error {
	b, err := readItems(s, w, r, wire.ParseCheckpoints)
	if err != nil {
		return err
	}
	b.Owner, b.Quota, b.Received = who.User.ID, s.Quota.For(who.User), time.Now()
	if b.Head.Writer, err = writerOf(r); err != nil {
		return err
	}
	err = s.store.writes.PutCheckpoints(r.Context(), b)
	if err == nil {
		s.counts.Artifacts(int64(len(b.List)), 0, 0, 0)
	}
	return s.answerStored(w, r, who, b.Head, len(b.List), err)
}

// checkpoints is GET /api/checkpoints?session&user&after&limit, and GET /api/sessions/{id}/checkpoints?user&machine&
// after&limit: the latest first.
func (s *Server) checkpoints(r *http.Request, who server.Key) (any, error) {
	f := s.filter(r)
	q := server.CheckpointQuery{Session: r.URL.Query().Get("session"), After: f.Text("after"), Limit: f.Limit()}
	if ref := refOf(r); ref.SessionID != "" {
		q.Session, q.Ref = "", &ref
	}
	var err error
	if q.User, err = s.userOf(r, who, f, q.Session); err != nil {
		return nil, err
	}
	list, err := s.store.artifacts.Checkpoints(r.Context(), server.ScopeOf(who.User), q)
	if err != nil {
		return nil, err
	}
	names, err := ownersOf(r, s.store.users, list.List, func(c *server.Checkpoint) int64 { return c.Owner })
	if err != nil {
		return nil, err
	}
	return struct {
		Checkpoints []checkpointAnswer `json:"checkpoints"`
		Next        *string            `json:"next"` // null on the last page
	}{each(list.List, func(c server.Checkpoint) checkpointAnswer { return checkpointAnswerOf(c, names) }),
		orNull(list.Next)}, nil
}

// checkpoint is GET /api/checkpoints/{id}?user.
func (s *Server) checkpoint(r *http.Request, who server.Key) (any, error) {
	f := s.filter(r)
	owner := f.User()
	if f.Err != nil {
		return nil, f.Err
	}
	c, err := s.store.artifacts.Checkpoint(r.Context(), server.ScopeOf(who.User), r.PathValue("id"), owner)
	if err != nil {
		return nil, err
	}
	names, err := s.store.users.UserNames(r.Context(), []int64{c.Owner})
	if err != nil {
		return nil, err
	}
	return checkpointAnswerOf(c, names), nil
}

// checkpointAnswer is a checkpoint on the wire.
type checkpointAnswer struct {
	server.Checkpoint
	User string `json:"user"`
	Line *int64 `json:"line"`
}

func checkpointAnswerOf(c server.Checkpoint, names namesOf) checkpointAnswer {
	return checkpointAnswer{c, names[c.Owner], lineOrNull(c.Line)}
}

// lineOrNull is nil for no line.
func lineOrNull(line int64) *int64 {
	if line < 0 {
		return nil
	}
	return &line
}
