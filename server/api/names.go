package api

import (
	"errors"
	"net/http"

	"github.com/ccship/ccship/server"
)

// filter reads a request's query, with the name of the user that it names.
func (s *Server) filter(r *http.Request) *filterOf {
	named, err := namedUser(r, s.store.users)
	f := newQuery(r.URL.Query(), named)
	f.Err = err
	return f
}

// userOf is the named user, else the one whose session a listing is narrowed to: of several users' sessions with one id
// a listing shows one user's, as reading does. 0: nothing is narrowed, or there is no such session.
func (s *Server) userOf(r *http.Request, who server.Key, f *filterOf, session string) (int64, error) {
	user := f.User()
	if user != 0 || session == "" || f.Err != nil {
		return user, f.Err
	}
	ref := server.Ref{SessionID: session, Machine: f.Machine()}
	x, err := s.store.sessions.Resolve(r.Context(), server.ScopeOf(who.User), ref)
	if errors.Is(err, server.ErrNotFound) {
		return 0, nil
	}
	return x.Owner, err
}
