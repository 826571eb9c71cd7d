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
