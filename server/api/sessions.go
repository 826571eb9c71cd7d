package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"

	"github.com/ccship/ccship/server/wire"
)

// foundAnswer is a session with what is derived of it and what its answers used.
type foundAnswer struct {
	sessionAnswer
	Summary summaryAnswer `json:"summary"`
	Usage   []usageAnswer `json:"usage"` // by model
	costAnswer
}

func (s *Server) answerFound(x server.Session, f server.Summary, usage []server.UsageRow,
	names namesOf) foundAnswer {
	a := foundAnswer{
		sessionAnswer: sessionAnswerOf(x, names), Summary: summaryAnswerOf(f), Usage: []usageAnswer{},
		costAnswer: answerCost(derive.CostOfAll(s.Prices, usage)),
	}
	by := []string{"model"}
	for _, part := range s.join(usage, by) {
		a.Usage = append(a.Usage, answerUsage(part, by, names))
	}
	return a
}

// sessions is GET /api/sessions?project&machine&user&model&branch&since&until&before&text&parent&agents&order&after
// &limit&failed&starred&tag. The orders of what has the most have one page.
func (s *Server) sessions(r *http.Request, who server.Key) (any, error) {
	f := s.filter(r)
	q := server.SessionQuery{
		Page:   server.Page{After: f.Text("after"), Limit: f.Limit()},
		Failed: f.Flag("failed", false), Starred: f.Flag("starred", false), Tag: f.Text("tag"), Reader: who.User.ID,
		Project: f.Text("project"), Machine: f.Machine(), Model: f.Text("model"), Branch: f.Text("branch"),
		Since: f.Moment("since"), Until: f.Moment("until"), Before: f.Moment("before"),
		Text: f.Text("text"), Parent: f.Text("parent"), Agents: f.Flag("agents", true),
	}
	order := f.OneOf("order", "first", "recent", derive.ByCost, derive.ByTokens, derive.ByTime)
	q.Recent = order == "recent"
	if f.Err != nil {
		return nil, f.Err
	}
	var err error
	if q.User, err = s.userOf(r, who, f, q.Parent); err != nil {
		return nil, err
	}
	projects, err := s.projects(r, who, &q.Project)
	if err != nil {
		return nil, err
	}
	found, err := s.ordered(r.Context(), server.ScopeOf(who.User), q, order)
	if err != nil {
		return nil, err
	}
	names, err := ownersOf(r, s.store.users, found.List, func(x *server.FoundSession) int64 { return x.Owner })
	if err != nil {
		return nil, err
	}
	type listed struct {
		foundAnswer
		Agents int64                  `json:"agents"` // transcripts of its agents
		Copies []protocol.SessionCopy `json:"copies,omitempty"`
	}
	a := struct {
		Sessions []listed `json:"sessions"`
		Next     *string  `json:"next"` // null on the last page
	}{each(found.List, func(x server.FoundSession) listed {
		x.Project = projects.Of(&x.Session)
		return listed{s.answerFound(x.Session, x.Summary, x.Usage, names), x.Agents, x.Copies}
	}), orNull(found.Next)}
	return a, nil
}

func (s *Server) ordered(ctx context.Context, scope server.Scope, q server.SessionQuery,
	order string) (found server.Found, err error) {
	if order == "first" || q.Recent {
		return s.store.sessions.Find(ctx, scope, q)
	}
	finder := derive.TopFinder{Store: s.store.recall, Prices: s.Prices, Now: time.Now}
	found.List, err = finder.List(ctx, scope, q, order)
	return found, err
}

// projects names the projects that a request may see, and makes of a name what the store knows the project by.
func (s *Server) projects(r *http.Request, who server.Key, chosen *string) (*derive.Projects, error) {
	p, err := derive.ReadProjects(r.Context(), s.store.sessions, server.ScopeOf(who.User))
	*chosen = p.Key(*chosen)
	return p, err
}

// groups is GET /api/groups?after&limit: projects by machine.
func (s *Server) groups(r *http.Request, who server.Key) (any, error) {
	f := newQuery(r.URL.Query(), nil)
	q := server.GroupQuery{After: f.Text("after"), Limit: f.Limit()}
	if f.Err != nil {
		return nil, f.Err
	}
	list, err := s.store.sessions.Groups(r.Context(), server.ScopeOf(who.User), q)
	if err != nil {
		return nil, err
	}
	names, err := ownersOf(r, s.store.users, list.List, func(g *server.Group) int64 { return g.Owner })
	if err != nil {
		return nil, err
	}
	return struct {
		Groups []groupAnswer `json:"groups"`
		Next   *string       `json:"next"` // null on the last page
	}{each(list.List, func(g server.Group) groupAnswer { return groupAnswer{g, names[g.Owner]} }), orNull(list.Next)}, nil
}

// session is GET /api/sessions/{id}?user&machine&epoch: one stream with its epochs, newest first, and the
// generations of the one in front or named.
func (s *Server) session(w http.ResponseWriter, r *http.Request, who server.Key) error {
	return s.read(w, r, who, func(ctx context.Context, snap server.Snapshot) (any, error) {
		x := snap.Session()
		names, err := s.store.users.UserNames(ctx, []int64{x.Owner})
		if err != nil {
			return nil, err
		}
		projects, err := s.projects(r, who, new(string))
		if err != nil {
			return nil, err
		}
		x.Project = projects.Of(&x)
		known, err := derive.Known(ctx, s.store.sessions, server.ScopeOf(who.User), x)
		if err != nil {
			return nil, err
		}
		origin, err := derive.Origin(ctx, snap)
		if err != nil {
			return nil, err
		}
		keeping, err := s.store.sessions.KeptUntil(ctx, x.ID, time.Now())
		if err != nil {
			return nil, err
		}
		commits, err := s.store.recall.Commits(ctx, server.ScopeOf(who.User), x.Owner, x.ID)
		if err != nil {
			return nil, err
		}
		a := struct {
			foundAnswer
			ForkedFrom  string               `json:"forked_from"` // "" for none
			Commits     []server.CommitShare `json:"commits"`
			Retention   retentionAnswer      `json:"retention"`
			EpochList   []server.Epoch       `json:"epoch_list"`
			Generations []server.Generation  `json:"generations"`
		}{s.answerFound(x, known.Summary, known.Usage, names), origin, orEmpty(commits),
			retentionAnswer{keeping, timeAnswer(keeping.Retired), timeAnswer(keeping.Until)},
			snap.Epochs(), slices.Clone(snap.Generations())}
		for i, g := range a.Generations {
			a.Generations[i].EndLine = max(g.EndLine, g.RewoundTo)
		}
		return a, nil
	})
}

// refOf reads which stream a request means.
func refOf(r *http.Request) server.Ref {
	q := r.URL.Query()
	ref := server.Ref{SessionID: r.PathValue("id"), User: q.Get("user"), Epoch: q.Get("epoch")}
	if q.Has("machine") {
		m := q.Get("machine")
		ref.Machine = &m
	}
	return ref
}

// read answers what fn finds of the stream that the request names. The snapshot is closed before that: the reader may
// be slow.
func (s *Server) read(w http.ResponseWriter, r *http.Request, who server.Key,
	fn func(context.Context, server.Snapshot) (any, error)) error {
	var answer any
	err := s.open(r, who, func(ctx context.Context, snap server.Snapshot) (err error) {
		answer, err = fn(ctx, snap)
		return err
	})
	if err == nil {
		s.answer(w, http.StatusOK, answer)
	}
	return err
}

// open pins the stream that the request names for as long as fn runs.
func (s *Server) open(r *http.Request, who server.Key, fn func(context.Context, server.Snapshot) error) error {
	return s.view(r, who, refOf(r), fn)
}

// view pins a stream while fn runs.
func (s *Server) view(r *http.Request, who server.Key, ref server.Ref,
	fn func(context.Context, server.Snapshot) error) (err error) {
	snap, err := s.store.sessions.View(r.Context(), server.ScopeOf(who.User), ref)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := snap.Close(); cerr != nil {
			s.logOf(r).Error("request half done", "error", cerr)
		}
	}()
	return fn(r.Context(), snap)
}

// download is open for an answer whose reader may be slow: nothing is pinned while lines are written.
func (s *Server) download(r *http.Request, who server.Key, fn func(context.Context,
	server.Snapshot) error) (err error) {
	snap, err := server.OpenDownload(r.Context(), s.store.sessions, server.ScopeOf(who.User), refOf(r))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	return fn(r.Context(), snap)
}

// pickView returns the view of the generation in the query, or of the newest.
func pickView(q url.Values, snap server.Snapshot) (server.View, error) {
	gens := snap.Generations()
	g, err := numberOf(q, "generation", gens[len(gens)-1].Number)
	if err != nil {
		return server.View{}, err
	}
	return server.ViewOf(gens, g)
}

// sees says whether the caller may see the session that a request names, or several of that name.
func (s *Server) sees(r *http.Request, who server.Key) bool {
	ref := refOf(r)
	ref.Epoch = ""
	_, err := s.store.sessions.Resolve(r.Context(), server.ScopeOf(who.User), ref)
	_, several := errors.AsType[*server.AmbiguousError](err)
	return err == nil || several
}

// forget is DELETE /api/sessions/{id}?user: gone everywhere, and never stored again. A session that one may only see is
// not one's to forget.
func (s *Server) forget(r *http.Request, who server.Key) (any, error) {
	id := r.PathValue("id")
	list, err := s.store.users.Users(r.Context()) // before: afterwards it is too late to fail
	if err != nil {
		return nil, err
	}
	names := namesOf{}
	for _, u := range list {
		names[u.ID] = u.Name
	}
	f := newQuery(r.URL.Query(), names)
	owner := f.User()
	if f.Err != nil {
		return nil, f.Err
	}
	gone, err := s.store.sessions.Forget(r.Context(), server.ScopeOf(who.User), id, owner, time.Now())
	if errors.Is(err, server.ErrNotFound) && s.sees(r, who) {
		return nil, wire.Refuse(http.StatusForbidden, "forbidden", "only whose session it is, or an owner, may forget it")
	}
	if err != nil {
		return nil, err
	}
	s.logOf(r).Info("session forgotten", "session", id, "lines", gone.Lines, "by", who.User.Name)
	return forgottenAnswer{gone, names[gone.Owner]}, nil
}

// forgottenAnswer is a session that a user had removed.
type forgottenAnswer struct {
	server.Forgotten
	User string `json:"user"`
}

// forgotten is GET /api/forgotten.
func (s *Server) forgotten(r *http.Request, who server.Key) (any, error) {
	list, err := s.store.sessions.ListForgotten(r.Context(), server.ScopeOf(who.User))
	if err != nil {
		return nil, err
	}
	names, err := ownersOf(r, s.store.users, list, func(f *server.Forgotten) int64 { return f.Owner })
	if err != nil {
		return nil, err
	}
	return struct {
		Forgotten []forgottenAnswer `json:"forgotten"`
	}{each(list, func(f server.Forgotten) forgottenAnswer { return forgottenAnswer{f, names[f.Owner]} })}, nil
}

// sessionAnswer is a session on the wire.
type sessionAnswer struct {
	server.Session
	User   string  `json:"user"` // name of its owner; "" without one
	Parent *string `json:"parent_session_id"`
}

func sessionAnswerOf(x server.Session, names namesOf) sessionAnswer {
	return sessionAnswer{x, names[x.Owner], orNull(x.Parent)}
}

// summaryAnswer is what is derived of a session.
type summaryAnswer struct {
	server.Summary
	Started *time.Time `json:"started"`
	Ended   *time.Time `json:"ended"`
}

func summaryAnswerOf(f server.Summary) summaryAnswer {
	f.Models = orEmpty(f.Models)
	return summaryAnswer{f, timeAnswer(f.Started), timeAnswer(f.Ended)}
}

// groupAnswer is a project on a machine.
type groupAnswer struct {
	server.Group
	User string `json:"user"`
}

// retentionAnswer is what retention did to a session, and what its rules will do.
type retentionAnswer struct {
	server.RetentionOutlook
	RetiredAt *time.Time `json:"retired_at"` // null: the session was not dropped
	DueAt     *time.Time `json:"due_at"`     // null: no rule takes it at a time that is known
}

// timeAnswer is null for no time.
func timeAnswer(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
