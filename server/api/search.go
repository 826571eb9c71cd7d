package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
)

// hitAnswer is one line that was found.
type hitAnswer struct {
	Session    sessionAnswer `json:"session"`
	Title      string        `json:"title"`
	Generation int64         `json:"generation"`
	Line       int64         `json:"line_index"`
	Time       *time.Time    `json:"time"`
	Kind       string        `json:"kind"`
	Snippet    []snippetPart `json:"snippet"`
	Current    bool          `json:"current"`
}

// snippetPart is a piece of a snippet, in order.
type snippetPart struct {
	Text  string `json:"text"`
	Match bool   `json:"match"`
}

// snippetParts cuts a snippet at its marks.
func snippetParts(s string) []snippetPart {
	out := []snippetPart{}
	for match := false; s != ""; match = !match {
		mark := "\x02"
		if match {
			mark = "\x03"
		}
		text, rest, _ := strings.Cut(s, mark)
		if text != "" {
			out = append(out, snippetPart{text, match})
		}
		s = rest
	}
	return out
}

// search is GET /api/search?q&kind&project&machine&user&model&session&since&until&superseded&after&limit.
func (s *Server) search(w http.ResponseWriter, r *http.Request, who server.Key) error {
	names, err := s.names(r.Context())
	if err != nil {
		return err
	}
	f := newFilter(r.URL.Query(), names)
	q := server.SearchQuery{
		Text:    f.text("q"),
		Kinds:   f.list("kind", "prompt", "answer", "thinking", "tool", "result", "title", "other"),
		Project: f.text("project"), Machine: f.machine(), Model: f.text("model"),
		Session: f.text("session"), Since: f.moment("since"), Until: f.moment("until"),
		Superseded: f.flag("superseded", false), After: f.text("after"), Limit: f.limit(),
	}
	if f.err == nil && strings.TrimSpace(q.Text) == "" {
		f.fail("q", "a text to look for")
	}
	if f.err != nil {
		return f.err
	}
	if q.User, err = s.userOf(r, who, f, q.Session); err != nil {
		return err
	}
	hits, err := s.store.Search(r.Context(), server.ScopeOf(who.User), q)
	if err != nil {
		return err
	}
	a := struct {
		Hits []hitAnswer `json:"hits"`
		Next *string     `json:"next"` // null on the last page
	}{Hits: make([]hitAnswer, 0, len(hits.List))}
	for _, h := range hits.List {
		a.Hits = append(a.Hits, hitAnswer{
			answerSession(h.Session, names), h.Summary.Title, h.Generation, h.Line, momentOrNull(h.Time), h.Kind,
			snippetParts(h.Snippet), h.Current})
	}
	if hits.Next != "" {
		a.Next = &hits.Next
	}
	s.answer(w, http.StatusOK, a)
	return nil
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
func (s *Server) drops(w http.ResponseWriter, r *http.Request, who server.Key) error {
	names, err := s.names(r.Context())
	if err != nil {
		return err
	}
	f := newFilter(r.URL.Query(), names)
	q := server.DropQuery{Session: f.text("session"), Limit: f.limit()}
	if q.User, err = s.userOf(r, who, f, q.Session); err != nil {
		return err
	}
	scope := server.ScopeOf(who.User)
	lags, err := s.store.Lags(r.Context(), scope, q) // first: what is derived meanwhile is listed
	if err != nil {
		return err
	}
	list, err := s.store.Drops(r.Context(), scope, q)
	if err != nil {
		return err
	}
	a := struct {
		Drops   []dropAnswer `json:"drops"`
		Lagging bool         `json:"lagging"`
	}{make([]dropAnswer, 0, len(list)), lags}
	for _, d := range list {
		a.Drops = append(a.Drops,
			dropAnswer{answerSession(d.Session, names), d.Epoch, d.Generation, d.At, d.First, d.Last, d.Lines})
	}
	s.answer(w, http.StatusOK, a)
	return nil
}
