package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/wire"
)

// sessionAnswer is a session on the wire.
type sessionAnswer struct {
	SessionID     string    `json:"session_id"`
	User          string    `json:"user"` // name of its owner; "" without one
	Machine       string    `json:"machine"`
	Host          string    `json:"host"`
	ProjectHash   string    `json:"project_hash"`
	Project       string    `json:"project"`
	Cwd           string    `json:"cwd"`
	Path          string    `json:"path"`
	Parent        *string   `json:"parent_session_id"`
	Epoch         string    `json:"epoch"`
	Epochs        int       `json:"epochs"`
	Generation    int64     `json:"generation"`
	Lines         int64     `json:"lines"`
	Bytes         int64     `json:"bytes"`
	FirstReceived time.Time `json:"first_received"`
	LastReceived  time.Time `json:"last_received"`
	LastActive    time.Time `json:"last_active"`
}

func answerSession(x server.Session, names names) sessionAnswer {
	a := sessionAnswer{
		SessionID: x.SessionID, User: names[x.Owner], Machine: x.Machine, Host: x.Host, ProjectHash: x.ProjectHash,
		Project: x.Project, Cwd: x.Cwd, Path: x.Path, Epoch: x.Epoch, Epochs: x.Epochs, Generation: x.Generation,
		Lines: x.Lines, Bytes: x.Bytes, FirstReceived: x.First, LastReceived: x.Last,
		LastActive: x.Active,
	}
	if x.Parent != "" {
		a.Parent = &x.Parent
	}
	return a
}

// summaryAnswer is what is derived of a session.
type summaryAnswer struct {
	Title       string     `json:"title"`
	FirstPrompt string     `json:"first_prompt"`
	Model       string     `json:"model"`
	Models      []string   `json:"models"`
	Branch      string     `json:"branch"`
	Version     string     `json:"version"`
	Started     *time.Time `json:"started"`
	Ended       *time.Time `json:"ended"`
	Prompts     int64      `json:"prompts"`
	Messages    int64      `json:"messages"`
	Tools       int64      `json:"tools"`
	Errors      int64      `json:"errors"`
	Compactions int64      `json:"compactions"`
	Context     int64      `json:"context_tokens"`
	Window      int64      `json:"window_tokens"`
	Limit       int64      `json:"compact_at_tokens"`
	Lines       int64      `json:"derived_lines"`
}

func answerSummary(f server.Summary) summaryAnswer {
	a := summaryAnswer{
		Title: f.Title, FirstPrompt: f.FirstPrompt, Model: f.Model, Models: f.Models, Branch: f.Branch,
		Version: f.Version, Started: momentOrNull(f.Started), Ended: momentOrNull(f.Ended), Prompts: f.Prompts,
		Messages: f.Messages, Tools: f.Tools, Errors: f.Errors, Compactions: f.Compactions, Context: f.Context,
		Window: f.Window, Limit: f.Limit, Lines: f.Lines,
	}
	if a.Models == nil {
		a.Models = []string{}
	}
	return a
}

func momentOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// foundAnswer is a session with what is derived of it and what its answers used.
type foundAnswer struct {
	sessionAnswer
	Summary summaryAnswer `json:"summary"`
	Usage   []usageAnswer `json:"usage"` // by model
	costAnswer
}

func (s *Server) answerFound(x server.Session, f server.Summary, usage []server.UsageRow, names names) foundAnswer {
	a := foundAnswer{
		sessionAnswer: answerSession(x, names), Summary: answerSummary(f), Usage: []usageAnswer{},
		costAnswer: answerCost(s.Prices.Sum(usage)),
	}
	for _, row := range usage {
		row = server.UsageRow{Model: row.Model, Tokens: row.Tokens}
		a.Usage = append(a.Usage, s.answerUsage(row, []string{"model"}, names))
	}
	return a
}

// sessions is GET /api/sessions?project&machine&user&model&branch&since&until&text&parent&agents&order&after&limit.
func (s *Server) sessions(w http.ResponseWriter, r *http.Request, who server.Key) error {
	names, err := s.names(r.Context())
	if err != nil {
		return err
	}
	f := newFilter(r.URL.Query(), names)
	q := server.SessionQuery{
		Page: server.Page{
			After: f.text("after"), Limit: f.limit(), Recent: f.oneOf("order", "first", "recent") == "recent",
		},
		Project: f.text("project"), Machine: f.machine(), Model: f.text("model"), Branch: f.text("branch"),
		Since: f.moment("since"), Until: f.moment("until"), Text: f.text("text"), Parent: f.text("parent"),
		Agents: f.flag("agents", true),
	}
	if f.err != nil {
		return f.err
	}
	if q.User, err = s.userOf(r, who, f, q.Parent); err != nil {
		return err
	}
	found, err := s.store.Find(r.Context(), server.ScopeOf(who.User), q)
	if err != nil {
		return err
	}
	type listed struct {
		foundAnswer
		Agents int64 `json:"agents"` // transcripts of its agents
	}
	a := struct {
		Sessions []listed `json:"sessions"`
		Next     *string  `json:"next"` // null on the last page
	}{Sessions: make([]listed, 0, len(found.List))}
	for _, x := range found.List {
		a.Sessions = append(a.Sessions, listed{s.answerFound(x.Session, x.Summary, x.Usage, names), x.Agents})
	}
	if found.Next != "" {
		a.Next = &found.Next
	}
	s.answer(w, http.StatusOK, a)
	return nil
}

type groupAnswer struct {
	ProjectHash string    `json:"project_hash"`
	Project     string    `json:"project"`
	Cwd         string    `json:"cwd"`
	Machine     string    `json:"machine"`
	Host        string    `json:"host"`
	User        string    `json:"user"`
	Sessions    int64     `json:"sessions"`
	Bytes       int64     `json:"bytes"`
	Last        time.Time `json:"last_active"`
}

// groups is GET /api/groups: projects by machine.
func (s *Server) groups(w http.ResponseWriter, r *http.Request, who server.Key) error {
	names, err := s.names(r.Context())
	if err != nil {
		return err
	}
	list, err := s.store.Groups(r.Context(), server.ScopeOf(who.User))
	if err != nil {
		return err
	}
	a := struct {
		Groups []groupAnswer `json:"groups"`
	}{Groups: make([]groupAnswer, 0, len(list))}
	for _, g := range list {
		a.Groups = append(a.Groups, groupAnswer{
			g.ProjectHash, g.Project, g.Cwd, g.Machine, g.Host, names[g.Owner], g.Sessions, g.Bytes, g.Last})
	}
	s.answer(w, http.StatusOK, a)
	return nil
}

type epochAnswer struct {
	Epoch         string    `json:"epoch"`
	FirstReceived time.Time `json:"first_received"`
}

type generationAnswer struct {
	Generation    int64     `json:"generation"`
	RewoundTo     int64     `json:"rewound_to"`
	EndLine       int64     `json:"end_line"`
	EOFNewline    bool      `json:"eof_newline"`
	FirstReceived time.Time `json:"first_received"`
}

// session is GET /api/sessions/{id}?user&machine&epoch: one stream with its epochs, newest first, and the
// generations of the one in front or named.
func (s *Server) session(w http.ResponseWriter, r *http.Request, who server.Key) error {
	names, err := s.names(r.Context())
	if err != nil {
		return err
	}
	return s.open(r, who, func(ctx context.Context, snap server.Snapshot) error {
		x := snap.Session()
		facts, err := s.store.SummaryOf(ctx, x.ID)
		if err != nil {
			return err
		}
		usage, err := s.store.Usage(ctx, server.ScopeOf(who.User),
			server.UsageQuery{By: []string{"model"}, Session: x.SessionID, Machine: &x.Machine, User: x.Owner})
		if err != nil {
			return err
		}
		a := struct {
			foundAnswer
			EpochList   []epochAnswer      `json:"epoch_list"`
			Generations []generationAnswer `json:"generations"`
		}{foundAnswer: s.answerFound(x, facts, usage, names)}
		for _, e := range snap.Epochs() {
			a.EpochList = append(a.EpochList, epochAnswer{e.Name, e.First})
		}
		for _, g := range snap.Generations() {
			a.Generations = append(a.Generations,
				generationAnswer{g.Number, g.RewoundTo, max(g.EndLine, g.RewoundTo), g.EOFNewline, g.First})
		}
		s.answer(w, http.StatusOK, a)
		return nil
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

// open pins the stream that the request names for as long as fn runs.
func (s *Server) open(r *http.Request, who server.Key, fn func(context.Context, server.Snapshot) error) error {
	return s.view(r, who, refOf(r), fn)
}

// view pins a stream while fn runs.
func (s *Server) view(r *http.Request, who server.Key, ref server.Ref,
	fn func(context.Context, server.Snapshot) error) (err error) {
	snap, err := s.store.View(r.Context(), server.ScopeOf(who.User), ref)
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

// pickView returns the view of the generation in the query, or of the newest.
func pickView(q url.Values, snap server.Snapshot) (server.View, error) {
	gens := snap.Generations()
	g, err := number(q, "generation", gens[len(gens)-1].Number)
	if err != nil {
		return server.View{}, err
	}
	return server.ViewOf(gens, g)
}

// sees says whether the caller may see the session that a request names, or several of that name.
func (s *Server) sees(r *http.Request, who server.Key) bool {
	ref := refOf(r)
	ref.Epoch = ""
	_, err := s.store.Resolve(r.Context(), server.ScopeOf(who.User), ref)
	_, several := errors.AsType[*server.AmbiguousError](err)
	return err == nil || several
}

// forget is DELETE /api/sessions/{id}?user: gone everywhere, and never stored again. A session that one may only see is
// not one's to forget.
func (s *Server) forget(w http.ResponseWriter, r *http.Request, who server.Key) error {
	id := r.PathValue("id")
	names, err := s.names(r.Context())
	if err != nil {
		return err
	}
	f := newFilter(r.URL.Query(), names)
	owner := f.user()
	if f.err != nil {
		return f.err
	}
	gone, err := s.store.Forget(r.Context(), server.ScopeOf(who.User), id, owner, time.Now())
	if errors.Is(err, server.ErrNotFound) && s.sees(r, who) {
		return wire.Refuse(http.StatusForbidden, "forbidden", "only whose session it is, or an owner, may forget it")
	}
	if err != nil {
		return err
	}
	s.logOf(r).Info("session forgotten", "session", id, "lines", gone.Lines, "by", who.User.Name)
	s.answer(w, http.StatusOK, answerForgotten(gone, names))
	return nil
}

type forgottenAnswer struct {
	SessionID string    `json:"session_id"`
	User      string    `json:"user"`
	At        time.Time `json:"at"`
	Lines     int64     `json:"lines_removed"`
}

func answerForgotten(f server.Forgotten, names names) forgottenAnswer {
	return forgottenAnswer{f.SessionID, names[f.Owner], f.At, f.Lines}
}

// forgotten is GET /api/forgotten.
func (s *Server) forgotten(w http.ResponseWriter, r *http.Request, who server.Key) error {
	names, err := s.names(r.Context())
	if err != nil {
		return err
	}
	list, err := s.store.ListForgotten(r.Context(), server.ScopeOf(who.User))
	if err != nil {
		return err
	}
	a := struct {
		Forgotten []forgottenAnswer `json:"forgotten"`
	}{each(list, func(f server.Forgotten) forgottenAnswer { return answerForgotten(f, names) })}
	s.answer(w, http.StatusOK, a)
	return nil
}

// readJSON reads a small request document. It refuses unknown members: they may matter.
func (s *Server) readJSON(w http.ResponseWriter, r *http.Request, to any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxDocument))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return wire.Refuse(http.StatusRequestEntityTooLarge, "too_large",
			fmt.Sprintf("the request is larger than %d bytes", maxDocument))
	}
	if err != nil {
		return wire.BadRequest("bad_json", fmt.Sprintf("the body is not what this call takes: %v", err))
	}
	return nil
}

// maxDocument limits a request that carries no lines, in bytes.
const maxDocument = 1 << 20
