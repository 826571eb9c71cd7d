package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

type shareAnswer struct {
	Owner       string    `json:"owner"` // whose sessions
	With        string    `json:"with"`  // who may see them
	ProjectHash string    `json:"project_hash"`
	Project     string    `json:"project"`
	Documents   bool      `json:"documents"` // linked documents too
	Created     time.Time `json:"created"`
}

func answerShare(x Share, names names) shareAnswer {
	return shareAnswer{names[x.Owner], names[x.With], x.ProjectHash, x.Project, x.Documents, x.Created}
}

// listShares is GET /api/shares: those one gives or gets; an owner sees all.
func (s *Server) listShares(w http.ResponseWriter, r *http.Request, who Key) error {
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
		if who.User.Role == Owner || x.Owner == who.User.ID || x.With == who.User.ID {
			a.Shares = append(a.Shares, answerShare(x, names))
		}
	}
	s.answer(w, http.StatusOK, a)
	return nil
}

// shareRequest names a share. Project is a project_hash, or a name that is only one project's.
type shareRequest struct {
	Owner   string `json:"owner"` // "": oneself
	With    string `json:"with"`
	Project string `json:"project"`
	// Documents shows linked documents too, which are files of the other's. For removing a share it says nothing.
	Documents bool `json:"documents"`
}

// addShare is POST /api/shares {owner, with, project, documents}. Of a share that there is it changes documents.
func (s *Server) addShare(w http.ResponseWriter, r *http.Request, who Key) error {
	var q shareRequest
	if err := s.readJSON(w, r, &q); err != nil {
		return err
	}
	x, err := s.shareOf(r.Context(), who, q)
	if err != nil {
		return err
	}
	if x.Project == "" {
		return fmt.Errorf("project %q: %w", q.Project, ErrNotFound)
	}
	x.Created, x.Documents = time.Now().UTC(), q.Documents
	if err := s.store.AddShare(r.Context(), x); err != nil {
		return err
	}
	return s.answerShare(w, r, who, x, http.StatusCreated, "share added")
}

// removeShare is DELETE /api/shares {owner, with, project}.
func (s *Server) removeShare(w http.ResponseWriter, r *http.Request, who Key) error {
	var q shareRequest
	if err := s.readJSON(w, r, &q); err != nil {
		return err
	}
	x, err := s.shareOf(r.Context(), who, q)
	if err != nil {
		return err
	}
	if err := s.store.RemoveShare(r.Context(), x); err != nil {
		return err
	}
	return s.answerShare(w, r, who, x, http.StatusOK, "share removed")
}

func (s *Server) answerShare(w http.ResponseWriter, r *http.Request, who Key, x Share, status int, event string) error {
	names, err := s.names(r.Context())
	if err != nil {
		return err
	}
	a := answerShare(x, names)
	s.logOf(r).Info(event, "owner", a.Owner, "with", a.With, "project", x.ProjectHash, "by", who.User.Name)
	s.answer(w, status, a)
	return nil
}

// shareOf finds what a request names. One shares one's own projects; an owner anybody's.
func (s *Server) shareOf(ctx context.Context, who Key, q shareRequest) (Share, error) {
	owner, err := s.someone(ctx, who, q.Owner)
	if err != nil {
		return Share{}, err
	}
	with, err := s.store.FindUser(ctx, q.With)
	if err != nil {
		return Share{}, err
	}
	x, err := FindShare(ctx, s.store, owner, with, q.Project)
	if ambiguous, ok := err.(*AmbiguousProject); ok {
		return x, &refusal{http.StatusConflict, "ambiguous", ambiguous.Error()}
	}
	return x, err
}

// AmbiguousProject is for a name that several projects have.
type AmbiguousProject struct {
	Name   string
	Hashes []string
}

// Error names the projects by what tells them apart.
func (a *AmbiguousProject) Error() string {
	return fmt.Sprintf("%q is the name of several projects: %s; say which by its hash", a.Name, strings.Join(a.Hashes, ", "))
}

// FindShare puts a share together: of the project whose hash or name it is among owner's. A hash that owner has no
// session of is taken as it is, with Project left empty: a share may outlive its sessions.
func FindShare(ctx context.Context, library Library, owner, with User, project string) (Share, error) {
	x := Share{Owner: owner.ID, With: with.ID, ProjectHash: project}
	groups, err := library.Groups(ctx, Scope{All: true})
	if err != nil {
		return x, fmt.Errorf("list projects: %w", err)
	}
	byName := map[string]string{}
	for _, g := range groups {
		if g.Owner != owner.ID {
			continue
		}
		if g.ProjectHash == project {
			x.Project = g.Project
			return x, nil
		}
		if g.Project == project {
			byName[g.ProjectHash] = g.Project
		}
	}
	if len(byName) > 1 {
		a := &AmbiguousProject{Name: project}
		for hash := range byName {
			a.Hashes = append(a.Hashes, hash)
		}
		return x, a
	}
	for hash, name := range byName {
		x.ProjectHash, x.Project = hash, name
	}
	return x, nil
}

// addTicket is POST /api/tickets {ttl}: a one-time link that logs a browser in as oneself.
func (s *Server) addTicket(w http.ResponseWriter, r *http.Request, who Key) error {
	var q struct {
		TTL string `json:"ttl"`
	}
	if err := s.readJSON(w, r, &q); err != nil {
		return err
	}
	ttl, err := ParseTTL(q.TTL)
	if err != nil {
		return badRequest("bad_request", err.Error())
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
	}{TicketURL(base, ticket), until})
	return nil
}

// TicketURL is the address that a one-time link leads to, below base.
func TicketURL(base, ticket string) string {
	return strings.TrimRight(base, "/") + "/login?ticket=" + url.QueryEscape(ticket)
}

// ParseTTL reads how long a one-time link works: a Go duration, "" for DefaultTicket.
func ParseTTL(s string) (time.Duration, error) {
	if s == "" {
		return DefaultTicket, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d > MaxTicket {
		return 0, fmt.Errorf("%q is not a duration up to %v, such as 10m", s, MaxTicket)
	}
	return d, nil
}
