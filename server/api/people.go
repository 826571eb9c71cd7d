package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/wire"
)

// accountStore is what calls about users read and change.
type accountStore interface {
	server.Users
	server.Shares
	auth.Projects
	Keys(ctx context.Context, user int64) ([]server.Key, error)
	RevokeKey(ctx context.Context, name string, at time.Time) (server.Ended, error)
	Stored(ctx context.Context, user int64) (server.Stored, error)
}

// keptStore has what users keep.
type keptStore interface {
	server.Marks
	server.ShareLinks
	server.SavedViews
	Resolve(ctx context.Context, scope server.Scope, ref server.Ref) (server.Address, error)
}

// accountRequest is such a call.
type accountRequest struct {
	*http.Request
	Who    server.Key
	Ref    server.Ref // the session that it names
	Base   string     // where browsers reach this server
	Store  accountStore
	Kept   keptStore
	Access *auth.Access
	Quota  server.Quota // of users without limits of their own
	Log    *slog.Logger
	Read   func(to any) error // reads the body
}

// userAnswer is a user in answers.
type userAnswer struct {
	Name     string      `json:"name"`
	Role     server.Role `json:"role"`
	Created  time.Time   `json:"created"`
	Disabled *time.Time  `json:"disabled"` // null: may act
}

func answerUser(u server.User) userAnswer {
	return userAnswer{u.Name, u.Role, u.Created, timeAnswer(u.Disabled)}
}

// stored is how much of a user is stored.
type stored struct {
	Bytes    int64 `json:"bytes"`
	Sessions int64 `json:"sessions"`
}

// quota is how much a user may store.
type quota struct {
	Bytes    *int64 `json:"bytes"`    // null: no limit
	Sessions *int64 `json:"sessions"` // null: no limit
}

// answerMe is GET /api/me: whose key it is.
func answerMe(q *accountRequest) (status int, answer any, err error) {
	has, err := q.Store.Stored(q.Context(), q.Who.User.ID)
	if err != nil {
		return 0, nil, err
	}
	limits := q.Quota.For(q.Who.User)
	return http.StatusOK, struct {
		User   userAnswer `json:"user"`
		Key    keyAnswer  `json:"key"`
		Stored stored     `json:"stored"`
		Quota  quota      `json:"quota"`
	}{answerUser(q.Who.User), answerKey(q.Who), stored(has),
		quota{orNull(limits.Bytes), orNull(limits.Sessions)}}, nil
}

// listUsers is GET /api/users.
func listUsers(q *accountRequest) (status int, answer any, err error) {
	list, err := q.Store.Users(q.Context())
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, struct {
		Users []userAnswer `json:"users"`
	}{each(list, answerUser)}, nil
}

// addUser is POST /api/users {name, role}.
func addUser(q *accountRequest) (status int, answer any, err error) {
	var in struct {
		Name string `json:"name"`
		Role string `json:"role"`
	}
	if err := q.Read(&in); err != nil {
		return 0, nil, err
	}
	role, err := server.ParseRole(in.Role)
	if err == nil {
		err = auth.CheckAccountName(in.Name)
	}
	if err != nil {
		return 0, nil, wire.BadRequest("bad_request", err.Error())
	}
	u, err := q.Store.AddUser(q.Context(), in.Name, role, server.By{Key: q.Who.ID, At: time.Now()})
	if err != nil {
		return 0, nil, err
	}
	q.Log.Info("user added", "user", u.Name, "role", u.Role, "by", q.Who.User.Name)
	return http.StatusCreated, answerUser(u), nil
}

// changeUser is PATCH /api/users/{name} {role, disabled}.
func changeUser(q *accountRequest) (status int, answer any, err error) {
	var in struct {
		Role     *string `json:"role"`
		Disabled *bool   `json:"disabled"`
	}
	if err := q.Read(&in); err != nil {
		return 0, nil, err
	}
	u, err := q.Store.FindUser(q.Context(), q.PathValue("name"))
	if err != nil {
		return 0, nil, err
	}
	if in.Role != nil {
		role, err := server.ParseRole(*in.Role)
		if err != nil {
			return 0, nil, wire.BadRequest("bad_request", err.Error())
		}
		if err := auth.SetRole(q.Context(), q.Store, u, role, q.Who.ID); err != nil {
			return 0, nil, err
		}
	}
	if in.Disabled != nil {
		if err := auth.Disable(q.Context(), q.Store, u, *in.Disabled, q.Who.ID); err != nil {
			return 0, nil, err
		}
	}
	if u, err = q.Store.FindUser(q.Context(), u.Name); err != nil {
		return 0, nil, err
	}
	q.Log.Info("user changed", "user", u.Name, "role", u.Role, "disabled", !u.Disabled.IsZero(), "by", q.Who.User.Name)
	return http.StatusOK, answerUser(u), nil
}

// someone returns the named user; the caller for "". Only an owner may act for others.
func (q *accountRequest) someone(name string) (server.User, error) {
	if name == "" || name == q.Who.User.Name {
		return q.Who.User, nil
	}
	if q.Who.User.Role != server.Owner {
		return server.User{}, fmt.Errorf("user %q: %w", name, server.ErrNotFound)
	}
	return q.Store.FindUser(q.Context(), name)
}
