package api

import (
	"net/http"

	"github.com/ccship/ccship/server"
)

// kept makes a call of what answers one.
func (s *Server) kept(to func(*keepRequest) (status int, answer any, err error)) call {
	return func(w http.ResponseWriter, r *http.Request, who server.Key) error {
		status, answer, err := to(&keepRequest{Request: r, Who: who, Ref: refOf(r), Base: s.publicBase(r),
			Store: s.store, Access: s.access, Log: s.logOf(r), Read: func(to any) error { return s.readJSON(w, r, to) }})
		if err == nil {
			s.answer(w, status, answer)
		}
		return err
	}
}

// peopled makes a call of what answers one about people.
func (s *Server) peopled(to func(*accountRequest) (status int, answer any, err error)) call {
	return func(w http.ResponseWriter, r *http.Request, who server.Key) error {
		status, answer, err := to(&accountRequest{Request: r, Who: who, Quota: s.Quota,
			Store: s.store, Access: s.access, Log: s.logOf(r), Read: func(to any) error { return s.readJSON(w, r, to) }})
		if err == nil {
			s.answer(w, status, answer)
		}
		return err
	}
}
