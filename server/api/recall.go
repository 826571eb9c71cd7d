package api

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/recall"
	"github.com/ccship/ccship/transcript/session"
)

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
	q := recall.TimelineQuery{Ref: refOf(r), After: f.Text("after"), Limit: f.Limit()}
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
	t, err := recall.TimelineOf(r.Context(), s.store.recall, server.ScopeOf(who.User), q)
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
