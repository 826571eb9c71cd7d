package api

import (
	"errors"
	"net/http"

	"github.com/ccship/ccship/server"
)

// namedUser reads the name of the user that a request names; none when it names nobody that there is.
func namedUser(r *http.Request, st server.Users) (namesOf, error) {
	name := r.URL.Query().Get("user")
	if name == "" {
		return nil, nil //nolint:nilnil // no names
	}
	u, err := st.FindUser(r.Context(), name)
	if errors.Is(err, server.ErrNotFound) {
		return nil, nil //nolint:nilnil // no names
	}
	return namesOf{u.ID: u.Name}, err
}

// ownersOf reads the names of the users that the items of a list are of: there may be many others.
func ownersOf[T any](r *http.Request, st server.Users, list []T, of func(*T) int64) (namesOf, error) {
	ids := make([]int64, len(list))
	for i := range list {
		ids[i] = of(&list[i])
	}
	return st.UserNames(r.Context(), ids)
}
