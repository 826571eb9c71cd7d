package api

import (
	"context"
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
		User   userAnswer    `json:"user"`
		Key    keyAnswer     `json:"key"`
		Stored server.Stored `json:"stored"`
		Quota  quota         `json:"quota"`
	}{answerUser(q.Who.User), answerKey(q.Who), has,
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

// keyAnswer is a key in answers.
type keyAnswer struct {
	Name    string     `json:"name"`
	User    string     `json:"user"`
	Created time.Time  `json:"created"`
	Used    *time.Time `json:"last_used"`     // null: never
	Revoked *time.Time `json:"revoked"`       // null: never; may lie ahead
	Key     string     `json:"key,omitempty"` // shown once, when it is made
}

func answerKey(k server.Key) keyAnswer {
	return keyAnswer{k.Name, k.User.Name, k.Created, timeAnswer(k.Used), timeAnswer(k.Revoked), ""}
}

// listKeys is GET /api/keys?user: the caller's own keys; an owner sees all.
func listKeys(q *accountRequest) (status int, answer any, err error) {
	list, err := q.keys()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, struct {
		Keys []keyAnswer `json:"keys"`
	}{each(list, answerKey)}, nil
}

func (q *accountRequest) keys() ([]server.Key, error) {
	named, err := namedUser(q.Request, q.Store)
	if err != nil {
		return nil, err
	}
	f := newQuery(q.URL.Query(), named)
	user := f.User()
	if f.Err != nil {
		return nil, f.Err
	}
	if q.Who.User.Role != server.Owner {
		if user != 0 && user != q.Who.User.ID {
			return nil, nil
		}
		user = q.Who.User.ID
	}
	if user == unknownUser {
		return nil, nil
	}
	return q.Store.Keys(q.Context(), user)
}

// addKey is POST /api/keys {name, user}: for the caller, or by an owner for anyone.
func addKey(q *accountRequest) (status int, answer any, err error) {
	var in struct {
		Name string `json:"name"`
		User string `json:"user"`
	}
	if err := q.Read(&in); err != nil {
		return 0, nil, err
	}
	if err := auth.CheckAccountName(in.Name); err != nil {
		return 0, nil, wire.BadRequest("bad_request", err.Error())
	}
	user, err := auth.Someone(q.Context(), q.Store, q.Who.User, in.User)
	if err != nil {
		return 0, nil, err
	}
	k := server.Key{Name: in.Name, User: user, Created: time.Now().UTC(), By: q.Who.ID}
	key, err := q.Access.AddKey(q.Context(), k)
	if err != nil {
		return 0, nil, err
	}
	q.Log.Info("key added", "key", k.Name, "user", user.Name, "by", q.Who.User.Name)
	a := answerKey(k)
	a.Key = key
	return http.StatusCreated, a, nil
}

// ownKey returns the named key if it belongs to the caller or the caller is an owner.
func (q *accountRequest) ownKey() (server.Key, error) {
	return q.Access.OwnKey(q.Context(), q.Who.User, q.PathValue("name"))
}

// endedAnswer lists what revoking a key ended besides the key.
type endedAnswer struct {
	Keys    []string            `json:"keys"`
	Logins  int64               `json:"logins"`
	Tickets int64               `json:"tickets"`
	Links   int64               `json:"share_links"`
	Users   []string            `json:"users"` // that are disabled now
	Reset   []userAnswer        `json:"reset"` // as they were before a key gave them rights
	Shares  []server.EndedShare `json:"shares"`
}

// revokeKey is DELETE /api/keys/{name}: at once and permanently, with all that came from the key.
func revokeKey(q *accountRequest) (status int, answer any, err error) {
	k, err := q.ownKey()
	if err != nil {
		return 0, nil, err
	}
	ended, err := q.Store.RevokeKey(q.Context(), k.Name, time.Now())
	if err != nil {
		return 0, nil, err
	}
	q.Log.Info("key revoked", "key", k.Name, "by", q.Who.User.Name, "ended", ended.String())
	if k, err = q.ownKey(); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, struct {
		keyAnswer
		Ended endedAnswer `json:"ended"`
	}{answerKey(k), endedAnswer{orEmpty(ended.Keys), ended.Logins, ended.Tickets, ended.Links,
		orEmpty(ended.Users), each(ended.Reset, answerUser), orEmpty(ended.Shares)}}, nil
}

// rotateKey is POST /api/keys/{name}/rotate {grace}: another key of that name; the old one works until grace is over.
func rotateKey(q *accountRequest) (status int, answer any, err error) {
	var in struct {
		Grace string `json:"grace"`
	}
	if err := q.Read(&in); err != nil {
		return 0, nil, err
	}
	grace, err := auth.ParseGrace(in.Grace)
	if err != nil {
		return 0, nil, wire.BadRequest("bad_request", err.Error())
	}
	k, err := q.ownKey()
	if err != nil {
		return 0, nil, err
	}
	if !k.Revoked.IsZero() {
		return 0, nil, wire.Refuse(http.StatusConflict, "revoked", "the key is revoked; make a new one")
	}
	key, err := q.Access.RotateKey(q.Context(), k.Name, server.By{Key: q.Who.ID, At: time.Now().UTC()}, grace)
	if err != nil {
		return 0, nil, err
	}
	q.Log.Info("key rotated", "key", k.Name, "by", q.Who.User.Name)
	if k, err = q.ownKey(); err != nil {
		return 0, nil, err
	}
	a := answerKey(k)
	a.Key = key
	return http.StatusOK, a, nil
}

// addTicket is POST /api/tickets {ttl}: a one-time link that logs a browser in as the caller.
func addTicket(q *accountRequest) (status int, answer any, err error) {
	var body struct {
		TTL string `json:"ttl"`
	}
	if err := q.Read(&body); err != nil {
		return 0, nil, err
	}
	ttl, err := auth.ParseTTL(body.TTL)
	if err != nil {
		return 0, nil, wire.BadRequest("bad_request", err.Error())
	}
	until := time.Now().Add(ttl).UTC()
	ticket, err := q.Access.NewTicket(q.Context(), q.Who.User, q.Who.ID, ttl)
	if err != nil {
		return 0, nil, err
	}
	q.Log.Info("one-time link made", "user", q.Who.User.Name)
	return http.StatusCreated, struct {
		URL   string    `json:"url"`
		Until time.Time `json:"until"`
	}{auth.TicketURL(q.Base, ticket), until}, nil
}
