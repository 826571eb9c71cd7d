package api

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/wire"
)

type shareAnswer struct {
	Owner       string    `json:"owner"` // whose sessions
	With        string    `json:"with"`  // who may see them
	ProjectHash string    `json:"project_hash"`
	Project     string    `json:"project"`
	Documents   bool      `json:"documents"` // linked documents too
	Created     time.Time `json:"created"`
}

func answerShare(x server.Share, names names) shareAnswer {
	return shareAnswer{names[x.Owner], names[x.With], x.ProjectHash, x.Project, x.Documents, x.Created}
}

// listShares is GET /api/shares: those from and to the caller; an owner sees all.
func (s *Server) listShares(w http.ResponseWriter, r *http.Request, who server.Key) error {
	names, err := s.names(r.Context())
	if err != nil {
		return err
	}
	list, err := s.store.Shares(r.Context())
	if err != nil {
		return err
	}
	a := struct {
		Shares []shareAnswer `json:"shares"`
	}{[]shareAnswer{}}
	for _, x := range list {
		if who.User.Role == server.Owner || x.Owner == who.User.ID || x.With == who.User.ID {
			a.Shares = append(a.Shares, answerShare(x, names))
		}
	}
	s.answer(w, http.StatusOK, a)
	return nil
}

// shareRequest names a share. Project is a project_hash, or a name that only one project has.
type shareRequest struct {
	Owner   string `json:"owner"` // "": oneself
	With    string `json:"with"`
	Project string `json:"project"`
	// Documents also shows linked documents, which are the other user's files. It is ignored when a share is removed.
	Documents bool `json:"documents"`
}

// addShare is POST /api/shares {owner, with, project, documents}. It changes only documents of an existing share.
func (s *Server) addShare(w http.ResponseWriter, r *http.Request, who server.Key) error {
	q, x, err := s.readShare(w, r, who)
	if err != nil {
		return err
	}
	if x.Project == "" {
		return fmt.Errorf("project %q: %w", q.Project, server.ErrNotFound)
	}
	x.Created, x.Documents = time.Now().UTC(), q.Documents
	if err := s.store.AddShare(r.Context(), x); err != nil {
		return err
	}
	return s.answerShare(w, r, who, x, http.StatusCreated, "share added")
}

// removeShare is DELETE /api/shares {owner, with, project}.
func (s *Server) removeShare(w http.ResponseWriter, r *http.Request, who server.Key) error {
	_, x, err := s.readShare(w, r, who)
	if err != nil {
		return err
	}
	if err := s.store.RemoveShare(r.Context(), x); err != nil {
		return err
	}
	return s.answerShare(w, r, who, x, http.StatusOK, "share removed")
}

func (s *Server) answerShare(w http.ResponseWriter, r *http.Request, who server.Key, x server.Share, status int,
	event string) error {
	names, err := s.names(r.Context())
	if err != nil {
		return err
	}
	a := answerShare(x, names)
	s.logOf(r).Info(event, "owner", a.Owner, "with", a.With, "project", x.ProjectHash, "by", who.User.Name)
	s.answer(w, status, a)
	return nil
}

// readShare reads a request and finds the share it names. A user shares only own projects; an owner, those of all
// users.
func (s *Server) readShare(w http.ResponseWriter, r *http.Request,
	who server.Key) (q shareRequest, x server.Share, err error) {
	if err := s.readJSON(w, r, &q); err != nil {
		return q, x, err
	}
	owner, err := s.someone(r.Context(), who, q.Owner)
	if err != nil {
		return q, x, err
	}
	with, err := s.store.FindUser(r.Context(), q.With)
	if err != nil {
		return q, x, err
	}
	x, err = auth.FindShare(r.Context(), s.store, owner, with, q.Project)
	if ambiguous, ok := errors.AsType[*auth.AmbiguousProjectError](err); ok {
		return q, x, wire.Refuse(http.StatusConflict, "ambiguous", ambiguous.Error())
	}
	return q, x, err
}

// addTicket is POST /api/tickets {ttl}: a one-time link that logs a browser in as the caller.
func (s *Server) addTicket(w http.ResponseWriter, r *http.Request, who server.Key) error {
	var q struct {
		TTL string `json:"ttl"`
	}
	if err := s.readJSON(w, r, &q); err != nil {
		return err
	}
	ttl, err := auth.ParseTTL(q.TTL)
	if err != nil {
		return wire.BadRequest("bad_request", err.Error())
	}
	until := time.Now().Add(ttl).UTC()
	ticket, err := s.access.NewTicket(r.Context(), who.User, who.ID, ttl)
	if err != nil {
		return err
	}
	base := s.PublicURL
	if base == "" {
		scheme := "http"
		if s.access.Secure(r) {
			scheme = "https"
		}
		base = scheme + "://" + r.Host + s.Base
	}
	s.logOf(r).Info("one-time link made", "user", who.User.Name)
	s.answer(w, http.StatusCreated, struct {
		URL   string    `json:"url"`
		Until time.Time `json:"until"`
	}{auth.TicketURL(base, ticket), until})
	return nil
}
