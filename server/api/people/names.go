package people

import (
	"errors"
	"net/http"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api/query"
)

// Named reads the name of the user that a request names; none when it names nobody that there is.
func Named(r *http.Request, st server.Users) (query.Names, error) {
	name := r.URL.Query().Get("user")
	if name == "" {
		return nil, nil //nolint:nilnil // no names
	}
	u, err := st.FindUser(r.Context(), name)
	if errors.Is(err, server.ErrNotFound) {
		return nil, nil //nolint:nilnil // no names
	}
	return query.Names{u.ID: u.Name}, err
}

// Of reads the names of the users that the items of a list are of: there may be many others.
func Of[T any](r *http.Request, st server.Users, list []T, of func(*T) int64) (query.Names, error) {
	ids := make([]int64, len(list))
	for i := range list {
		ids[i] = of(&list[i])
	}
	return st.UserNames(r.Context(), ids)
}
