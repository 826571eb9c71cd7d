package api

import (
	"net/http"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/wire"
)

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
