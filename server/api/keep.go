package api

import (
	"net/http"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/wire"
)

// setMark is a mark in answers and requests.
type setMark struct {
	Star    bool      `json:"star"`
	Name    string    `json:"name"`
	Note    string    `json:"note"`
	Tags    []string  `json:"tags"`
	Updated time.Time `json:"updated,omitzero"` // ignored in requests
}

// marked is GET and PUT /api/sessions/{id}/mark: the caller's own mark, or another in its place.
func marked(q *accountRequest) (status int, answer any, err error) {
	at, err := q.Kept.Resolve(q.Context(), server.ScopeOf(q.Who.User), q.Ref)
	if err != nil {
		return 0, nil, err
	}
	var a setMark
	if q.Method == http.MethodPut {
		if err := q.Read(&a); err != nil {
			return 0, nil, err
		}
		m := server.Mark{Stream: at.Stream, Star: a.Star, Name: a.Name, Note: a.Note, Tags: a.Tags,
			Updated: time.Now().UTC()}
		if err := m.Tidy(); err != nil {
			return 0, nil, wire.BadRequest("invalid_mark", err.Error())
		}
		if err := q.Kept.SetMark(q.Context(), q.Who.User.ID, m); err != nil {
			return 0, nil, err
		}
	}
	list, err := q.Kept.Marks(q.Context(), q.Who.User.ID, []int64{at.Stream})
	m := list[at.Stream]
	a = setMark{m.Star, m.Name, m.Note, m.Tags, m.Updated}
	if a.Tags == nil {
		a.Tags = []string{}
	}
	return http.StatusOK, a, err
}
