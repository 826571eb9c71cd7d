package api

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/recall"
	"github.com/ccship/ccship/transcript/session"
)

// maxRecall is how many turns or episodes one answer has at most.
const maxRecall = 100

// lineURL is where a browser shows lines.
func (s *Server) lineURL(r *http.Request) linkAnswer {
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
func (s *Server) timeline(w http.ResponseWriter, r *http.Request, who server.Key) error {
	f := newQuery(r.URL.Query(), nil)
	q := recall.TimelineQuery{Ref: refOf(r), After: f.Text("after"), Limit: f.Limit()}
	var known []string
	for _, k := range session.MomentKinds() {
		known = append(known, string(k))
	}
	for _, k := range f.List("kind", known...) {
		q.Kinds = append(q.Kinds, session.MomentKind(k))
	}
	if f.Err != nil {
		return f.Err
	}
	t, err := recall.TimelineOf(r.Context(), s.store, server.ScopeOf(who.User), q)
	if err != nil {
		return err
	}
	names, err := s.store.UserNames(r.Context(), []int64{t.Session.Owner})
	if err != nil {
		return err
	}
	s.answer(w, http.StatusOK, timelineAnswerOf(t, names, s.lineURL(r)))
	return nil
}

// recalled reads what blame and fix have in common: which sessions to look in, and how many answers to give.
func (s *Server) recalled(r *http.Request, who server.Key) (q server.SearchQuery, err error) {
	f := s.filter(r)
	q = server.SearchQuery{Text: f.Text("q"), Project: f.Text("project"), Machine: f.Machine(), Session: f.Text("session"),
		Since: f.Moment("since"), Until: f.Moment("until"), Limit: min(f.Limit(), maxRecall)}
	q.User, err = s.userOf(r, who, f, q.Session)
	return q, err
}

// blame is GET /api/blame?file&kind&project&machine&user&session&since&until&limit: the turns that read or changed a
// file.
func (s *Server) blame(w http.ResponseWriter, r *http.Request, who server.Key) error {
	q, err := s.recalled(r, who)
	if err != nil {
		return err
	}
	f := newQuery(r.URL.Query(), nil)
	file := f.Text("file")
	q.Kinds = f.List("kind", server.EditKind, server.ReadKind)
	if f.Err == nil && strings.TrimSpace(file) == "" {
		f.Fail("file", "the path of a file, or its end")
	}
	if f.Err != nil {
		return f.Err
	}
	touches, more, err := recall.Blame(r.Context(), s.store, server.ScopeOf(who.User), file, q)
	if err != nil {
		return err
	}
	names, err := ownersOf(r, s.store, touches, func(t *recall.Touch) int64 { return t.Session.Owner })
	if err != nil {
		return err
	}
	s.answer(w, http.StatusOK, blameAnswer(touches, more, names, s.lineURL(r)))
	return nil
}

// fix is GET /api/fix?q&project&machine&user&session&since&until&limit: where an error occurred, and what followed
// until it did not occur again.
func (s *Server) fix(w http.ResponseWriter, r *http.Request, who server.Key) error {
	q, err := s.recalled(r, who)
	if err != nil {
		return err
	}
	if strings.TrimSpace(strings.ReplaceAll(q.Text, `"`, "")) == "" {
		f := newQuery(r.URL.Query(), nil)
		f.Fail("q", "the text of an error")
		return f.Err
	}
	episodes, err := recall.Fix(r.Context(), s.store, server.ScopeOf(who.User), q)
	if err != nil {
		return err
	}
	names, err := ownersOf(r, s.store, episodes, func(e *recall.Episode) int64 { return e.Session.Owner })
	if err != nil {
		return err
	}
	s.answer(w, http.StatusOK, fixAnswer(episodes, names, s.lineURL(r)))
	return nil
}
