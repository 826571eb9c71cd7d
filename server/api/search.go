package api

import (
	"net/http"
	"time"

	"github.com/ccship/ccship/server"
)

// hitAnswer is one line that was found.
type hitAnswer struct {
	Session    sessionAnswer `json:"session"`
	Title      string        `json:"title"`
	Prompt     string        `json:"first_prompt"`
	Generation int64         `json:"generation"`
	Line       int64         `json:"line_index"`
	Time       *time.Time    `json:"time"`
	Kind       string        `json:"kind"`
	Snippet    []pieceAnswer `json:"snippet"`
	Current    bool          `json:"current"`
	URL        string        `json:"url"`
}

// search is GET /api/search?q&file&tool&kind&project&machine&user&model&session&since&until&superseded&after&limit.
func (s *Server) search(w http.ResponseWriter, r *http.Request, who server.Key) error {
	f := s.filter(r)
	q := server.SearchQuery{
		Text:    f.Text("q"),
		Kinds:   f.List("kind", append(server.TextKinds(), server.PlaceKinds()...)...),
		Tool:    f.Text("tool"),
		File:    f.Text("file"),
		Project: f.Text("project"), Machine: f.Machine(), Model: f.Text("model"),
		Session: f.Text("session"), Since: f.Moment("since"), Until: f.Moment("until"),
		Superseded: f.Flag("superseded", false), After: f.Text("after"), Limit: f.Limit(),
	}
	if f.Err == nil && q.Empty() {
		f.Fail("q", "a text to look for, and neither file nor tool is given")
	}
	if f.Err != nil {
		return f.Err
	}
	var err error
	if q.User, err = s.userOf(r, who, f, q.Session); err != nil {
		return err
	}
	hits, err := s.store.Search(r.Context(), server.ScopeOf(who.User), q)
	if err != nil {
		return err
	}
	names, err := ownersOf(r, s.store, hits.List, func(h *server.Hit) int64 { return h.Session.Owner })
	if err != nil {
		return err
	}
	a := struct {
		Hits []hitAnswer `json:"hits"`
		Next *string     `json:"next"` // null on the last page
		More bool        `json:"incomplete"`
	}{Hits: make([]hitAnswer, 0, len(hits.List)), More: hits.More}
	for _, h := range hits.List {
		a.Hits = append(a.Hits, hitAnswer{
			sessionAnswerOf(h.Session, names), h.Summary.Title, h.Summary.FirstPrompt, h.Generation, h.Line,
			timeAnswer(h.Time), h.Kind, piecesAnswer(h.Snippet), h.Current, s.hitURL(r, h)})
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
	f := s.filter(r)
	q := server.DropQuery{Session: f.Text("session"), Limit: f.Limit()}
	var err error
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
	names, err := ownersOf(r, s.store, list, func(d *server.Drop) int64 { return d.Session.Owner })
	if err != nil {
		return err
	}
	a := struct {
		Drops   []dropAnswer `json:"drops"`
		Lagging bool         `json:"lagging"`
	}{make([]dropAnswer, 0, len(list)), lags}
	for _, d := range list {
		a.Drops = append(a.Drops,
			dropAnswer{sessionAnswerOf(d.Session, names), d.Epoch, d.Generation, d.At, d.First, d.Last, d.Lines})
	}
	s.answer(w, http.StatusOK, a)
	return nil
}
