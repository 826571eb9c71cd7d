package api

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/wire"
	"github.com/ccship/ccship/transcript/provenance"
	"github.com/ccship/ccship/transcript/session"
)

const (
	// defaultFound and mostFound are how many sessions a page has, defaultEach and mostEach how many lines of each.
	defaultFound = 20
	mostFound    = 100
	defaultEach  = 3
	mostEach     = 50
)

// search is GET /api/search?q&zone&facets&each&after&limit.
func (s *Server) search(r *http.Request, who server.Key) (any, error) {
	f := s.filter(r)
	a := server.RankQuery{Reader: who.User.ID, Zone: f.Zone(), After: f.Text("after"),
		Limit: f.Number("limit", defaultFound, mostFound), Each: f.Number("each", defaultEach, mostEach),
		Facets: f.Flag("facets", false)}
	a.Query = server.ParseQuery(f.Text("q"), time.Now().In(time.FixedZone("", int(a.Zone/time.Second))))
	if f.Err == nil && a.Query.Empty() {
		f.Fail("q", "a text to look for")
	}
	if f.Err != nil {
		return nil, f.Err
	}
	projects, err := derive.ReadProjects(r.Context(), s.store.sessions, server.ScopeOf(who.User))
	if err != nil {
		return nil, err
	}
	found, err := s.store.search.Rank(r.Context(), server.ScopeOf(who.User), projects.Ask(a))
	if err == nil && len(found.List) == 0 {
		err = derive.Unknown(r.Context(), s.store.names, server.ScopeOf(who.User), &a.Query)
	}
	if err != nil {
		return nil, err
	}
	names, err := ownersOf(r, s.store.users, found.List, func(x *server.RankedSession) int64 { return x.Owner })
	if err != nil {
		return nil, err
	}
	out := protocol.Found[sessionAnswer]{Sessions: []rankedAnswer{}, Total: found.Total,
		Missing: orEmpty(found.Missing), Notes: orEmpty(a.Query.Notes), Next: orNull(found.Next), More: found.More}
	for i := range found.List {
		found.List[i].Project = projects.Of(&found.List[i].Session)
		out.Sessions = append(out.Sessions, s.rankedAnswer(r, &found.List[i], names))
	}
	if x := found.Facets; a.Facets {
		out.Facets = &protocol.Facets{Projects: orEmpty(projects.Counts(x.Projects)), Kinds: orEmpty(x.Kinds),
			Months: orEmpty(x.Months)}
	}
	return out, nil
}

type rankedAnswer = protocol.FoundSession[sessionAnswer]

func (s *Server) rankedAnswer(r *http.Request, x *server.RankedSession, names namesOf) rankedAnswer {
	return rankedAnswer{Session: sessionAnswerOf(x.Session, names), Title: x.Summary.Title, Prompt: x.Summary.FirstPrompt,
		Branch: x.Summary.Branch, Gone: orNull(x.Gone), Missing: orEmpty(x.Missing),
		Hits: each(x.Hits, func(h server.Hit) protocol.Hit {
			return protocol.Hit{SessionID: h.Session.SessionID, Generation: h.Generation, Line: h.Line, Time: timeAnswer(h.Time),
				Kind: h.Kind, Snippet: piecesAnswer(h.Snippet), Current: h.Current, URL: s.hitURL(r, h)}
		})}
}

type dropAnswer struct {
	Session    sessionAnswer `json:"session"`
	Epoch      string        `json:"epoch"`
	Generation int64         `json:"generation"`
	At         time.Time     `json:"at"`
	From       int64         `json:"from_line"`
	To         int64         `json:"to_line"` // before it
	Lines      int64         `json:"lines"`
}

// drops is GET /api/drops?session&user&limit: rewrites that took lines out of files, the newest first.
func (s *Server) drops(r *http.Request, who server.Key) (any, error) {
	f := s.filter(r)
	q := server.DropQuery{Session: f.Text("session"), Limit: f.Limit()}
	var err error
	if q.User, err = s.userOf(r, who, f, q.Session); err != nil {
		return nil, err
	}
	scope := server.ScopeOf(who.User)
	lags, err := s.store.search.Lags(r.Context(), scope, q) // first: what is derived meanwhile is listed
	if err != nil {
		return nil, err
	}
	list, err := s.store.search.Drops(r.Context(), scope, q)
	if err != nil {
		return nil, err
	}
	names, err := ownersOf(r, s.store.users, list, func(d *server.Drop) int64 { return d.Session.Owner })
	if err != nil {
		return nil, err
	}
	a := struct {
		Drops   []dropAnswer `json:"drops"`
		Lagging bool         `json:"lagging"`
	}{each(list, func(d server.Drop) dropAnswer {
		return dropAnswer{sessionAnswerOf(d.Session, names), d.Epoch, d.Generation, d.At, d.First, d.Last, d.Lines}
	}), lags}
	return a, nil
}

// piecesAnswer cuts a snippet at its marks.
func piecesAnswer(s string) []protocol.Piece {
	out := []protocol.Piece{}
	for match := false; s != ""; match = !match {
		mark := "\x02"
		if match {
			mark = "\x03"
		}
		text, rest, _ := strings.Cut(s, mark)
		if text != "" {
			out = append(out, protocol.Piece{Text: text, Match: match})
		}
		s = rest
	}
	return out
}

// lineURL returns where a browser shows a line of a session.
func (s *Server) lineURL(r *http.Request) func(x server.Session, line int64) string {
	base := s.publicBase(r)
	return func(x server.Session, line int64) string {
		q := url.Values{"machine": {x.Machine}}
		if x.Owner != 0 {
			q.Set("owner", strconv.FormatInt(x.Owner, 10))
		}
		return base + "/sessions/" + url.PathEscape(x.SessionID) + "/L/" + strconv.FormatInt(line, 10) + "?" + q.Encode()
	}
}

// hitURL is where a browser shows a line that was found.
func (s *Server) hitURL(r *http.Request, h server.Hit) string {
	at := s.lineURL(r)(h.Session, h.Line)
	if !h.Current {
		at += "&generation=" + strconv.FormatInt(h.Generation, 10) + "&epoch=" + url.QueryEscape(h.Epoch)
	}
	return at
}

// publicBase is where browsers reach this server.
func (s *Server) publicBase(r *http.Request) string {
	if s.PublicURL != "" {
		return s.PublicURL
	}
	scheme := "http"
	if s.access.Secure(r) {
		scheme = "https"
	}
	return scheme + "://" + r.Host + s.Base
}

// timeline is GET /api/sessions/{id}/timeline?user&machine&kind&after&limit: what happened in a session, and how long
// it took.
func (s *Server) timeline(r *http.Request, who server.Key) (any, error) {
	f := newQuery(r.URL.Query(), nil)
	q := derive.TimelineQuery{Ref: refOf(r), After: f.Text("after"), Limit: f.Limit()}
	var known []string
	for _, k := range session.MomentKinds() {
		known = append(known, string(k))
	}
	for _, k := range f.List("kind", known...) {
		q.Kinds = append(q.Kinds, session.MomentKind(k))
	}
	if f.Err != nil {
		return nil, f.Err
	}
	t, err := derive.TimelineOf(r.Context(), s.store.recall, server.ScopeOf(who.User), q)
	if err != nil {
		return nil, err
	}
	names, err := s.store.users.UserNames(r.Context(), []int64{t.Session.Owner})
	if err != nil {
		return nil, err
	}
	link := s.lineURL(r)
	return timelineAnswer{sessionAnswerOf(t.Session, names), each(t.Moments, func(m session.Moment) moment {
		return moment{m.Line, m, link(t.Session, m.Line)}
	}), t.Read, orNull(t.Next)}, nil
}

// moment is one entry of a timeline.
type moment struct {
	Line int64 `json:"line_index"`
	session.Moment
	URL string `json:"url"`
}

// timelineAnswer is a page of a timeline.
type timelineAnswer struct {
	Session sessionAnswer `json:"session"`
	Moments []moment      `json:"moments"`
	Read    int64         `json:"lines_read"` // of the session's lines
	Next    *string       `json:"next"`       // null on the last page
}

// whyRequest has what commits add. Lines are hashes of their texts: the server learns no text.
type whyRequest struct {
	Commits provenance.Commits `json:"commits"`
}

type whyAnswer struct {
	Commits []provenance.Answer `json:"commits"`
}

// maxWhy limits a question, in bytes.
const maxWhy = 8 << 20

// why is GET /api/why?q&lines, and POST for what does not fit into an address: which sessions wrote the lines of
// commits, and for which prompts. POST notes at sessions what they wrote of the commits.
func (s *Server) why(w http.ResponseWriter, r *http.Request, who server.Key) error {
	f := newQuery(r.URL.Query(), nil)
	each := f.Text("lines") == "1"
	var q whyRequest
	if text := f.Text("q"); r.Method != http.MethodGet {
		if err := s.readBody(w, r, maxWhy, &q); err != nil {
			return err
		}
	} else if err := json.Unmarshal([]byte(text), &q); err != nil {
		f.Fail("q", "what POST takes, as JSON")
		return f.Err
	}
	ask := derive.WhyQuery{Commits: q.Commits, Lines: each, URL: s.lineURL(r), Share: r.Method == http.MethodPost}
	if err := ask.Check(); err != nil {
		return wire.BadRequest("bad_request", err.Error())
	}
	names := namesOf{}
	users := func(owner int64) string {
		_ = s.learn(r.Context(), names, owner) // "" for a name that cannot be read
		return names[owner]
	}
	answers, shares, err := derive.AnswerWhy(r.Context(), s.store.recall, server.ScopeOf(who.User), users, ask)
	if err != nil {
		return err
	}
	// An answer is worth more than that it is noted.
	if err := s.store.recall.KeepCommits(r.Context(), shares); err != nil {
		s.logOf(r).Warn("commits are not noted at their sessions", "error", err)
	}
	s.answer(w, http.StatusOK, whyAnswer{orEmpty(answers)})
	return nil
}
