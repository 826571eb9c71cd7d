package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/wire"
)

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
	user, err := q.someone(in.User)
	if err != nil {
		return 0, nil, err
	}
	key, hash := auth.NewKey()
	k := server.Key{Name: in.Name, User: user, Created: time.Now().UTC()}
	k.Hash, k.By = hash, q.Who.ID
	if err := q.Access.AddKey(q.Context(), k); err != nil {
		return 0, nil, err
	}
	q.Log.Info("key added", "key", k.Name, "user", user.Name, "by", q.Who.User.Name)
	a := answerKey(k)
	a.Key = key
	return http.StatusCreated, a, nil
}

// ownKey returns the named key if it belongs to the caller or the caller is an owner.
func (q *accountRequest) ownKey() (server.Key, error) {
	user := q.Who.User.ID
	if q.Who.User.Role == server.Owner {
		user = 0
	}
	name := q.PathValue("name")
	list, err := q.Store.Keys(q.Context(), user)
	if err != nil {
		return server.Key{}, err
	}
	for _, k := range list {
		if k.Name == name {
			return k, nil
		}
	}
	return server.Key{}, fmt.Errorf("key %q: %w", name, server.ErrNotFound)
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

func answerEnded(e server.Ended) endedAnswer {
	return endedAnswer{orEmpty(e.Keys), e.Logins, e.Tickets, e.Links, orEmpty(e.Users), each(e.Reset, answerUser),
		orEmpty(e.Shares)}
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
	}{answerKey(k), answerEnded(ended)}, nil
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
	key, hash := auth.NewKey()
	now := time.Now().UTC()
	next := server.Key{Name: k.Name, Hash: hash, Created: now, By: q.Who.ID}
	if err := q.Access.RotateKey(q.Context(), next, now.Add(grace)); err != nil {
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
