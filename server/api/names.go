package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api/query"
)

// names reads all users' names. There are few.
func (s *Server) names(ctx context.Context) (query.Names, error) {
	list, err := s.store.Users(ctx)
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	out := make(query.Names, len(list))
	for _, u := range list {
		out[u.ID] = u.Name
	}
	return out, nil
}

// userOf is the named user, else the one whose session a listing is narrowed to: of several users' sessions with one id
// a listing shows one user's, as reading does. 0: nothing is narrowed, or there is no such session.
func (s *Server) userOf(r *http.Request, who server.Key, f *query.Filter, session string) (int64, error) {
	user := f.User()
	if user != 0 || session == "" || f.Err != nil {
		return user, f.Err
	}
	ref := server.Ref{SessionID: session, Machine: f.Machine()}
	x, err := s.store.Resolve(r.Context(), server.ScopeOf(who.User), ref)
	if errors.Is(err, server.ErrNotFound) {
		return 0, nil
	}
	return x.Owner, err
}
