package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/wire"
)

// savedViewAnswer is a saved view in answers.
type savedViewAnswer struct {
	server.SavedView
	URL string `json:"url"` // the page
	API string `json:"api"` // the call that answers the same, as of now
}

func (q *accountRequest) answerView(v server.SavedView, zone time.Duration) savedViewAnswer {
	return savedViewAnswer{v, q.Base + v.Path(), v.Call(time.Now(), zone)}
}

// savedViews is GET /api/views?zone: the caller's own.
func savedViews(q *accountRequest) (status int, answer any, err error) {
	f := newQuery(q.URL.Query(), nil)
	zone := f.Zone()
	if f.Err != nil {
		return 0, nil, f.Err
	}
	list, err := q.Kept.SavedViews(q.Context(), q.Who.User.ID)
	return http.StatusOK, struct {
		Views []savedViewAnswer `json:"views"`
	}{each(list, func(v server.SavedView) savedViewAnswer { return q.answerView(v, zone) })}, err
}

// saveView is PUT /api/views/{name} {page, query}: a view that replaces the caller's one of that name.
func saveView(q *accountRequest) (status int, answer any, err error) {
	var body struct {
		Page  string `json:"page"`
		Query string `json:"query"`
	}
	if err := q.Read(&body); err != nil {
		return 0, nil, err
	}
	v := server.SavedView{Name: q.PathValue("name"), Page: body.Page, Query: body.Query, Updated: time.Now().UTC()}
	if err = v.Tidy(); err == nil {
		err = q.Kept.SaveView(q.Context(), q.Who.User.ID, v)
	}
	if bad, ok := errors.AsType[server.ViewError](err); ok {
		return 0, nil, wire.BadRequest("invalid_view", bad.Error())
	}
	return http.StatusOK, q.answerView(v, 0), err
}

// removeView is DELETE /api/views/{name}.
func removeView(q *accountRequest) (status int, answer any, err error) {
	name := q.PathValue("name")
	return http.StatusOK, struct {
		Name string `json:"name"`
	}{name}, q.Kept.RemoveView(q.Context(), q.Who.User.ID, name)
}

// marked is GET and PUT /api/sessions/{id}/mark: the caller's own mark, or another in its place.
func marked(q *accountRequest) (status int, answer any, err error) {
	at, err := q.Kept.Resolve(q.Context(), server.ScopeOf(q.Who.User), q.Ref)
	if err != nil {
		return 0, nil, err
	}
	if q.Method == http.MethodPut {
		var m server.Mark
		if err := q.Read(&m); err != nil {
			return 0, nil, err
		}
		m.Stream, m.Updated = at.Stream, time.Now().UTC()
		if err := m.Tidy(); err != nil {
			return 0, nil, wire.BadRequest("invalid_mark", err.Error())
		}
		if err := q.Kept.SetMark(q.Context(), q.Who.User.ID, m); err != nil {
			return 0, nil, err
		}
	}
	list, err := q.Kept.Marks(q.Context(), q.Who.User.ID, []int64{at.Stream})
	m := list[at.Stream]
	m.Tags = orEmpty(m.Tags)
	return http.StatusOK, m, err
}
