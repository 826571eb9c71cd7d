package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/wire"
)

type userAnswer struct {
	Name     string      `json:"name"`
	Role     server.Role `json:"role"`
	Created  time.Time   `json:"created"`
	Disabled *time.Time  `json:"disabled"` // null: may act
}

func answerUser(u server.User) userAnswer {
	return userAnswer{u.Name, u.Role, u.Created, momentOrNull(u.Disabled)}
}

// me is GET /api/me: whose key it is.
func (s *Server) me(w http.ResponseWriter, _ *http.Request, who server.Key) error {
	s.answer(w, http.StatusOK, struct {
		User userAnswer `json:"user"`
		Key  keyAnswer  `json:"key"`
	}{answerUser(who.User), answerKey(who)})
	return nil
}

// users is GET /api/users.
func (s *Server) users(w http.ResponseWriter, r *http.Request, _ server.Key) error {
	list, err := s.store.Users(r.Context())
	if err != nil {
		return err
	}
	a := struct {
		Users []userAnswer `json:"users"`
	}{each(list, answerUser)}
	s.answer(w, http.StatusOK, a)
	return nil
}

// addUser is POST /api/users {name, role}.
func (s *Server) addUser(w http.ResponseWriter, r *http.Request, who server.Key) error {
	var q struct {
		Name string `json:"name"`
		Role string `json:"role"`
	}
	if err := s.readJSON(w, r, &q); err != nil {
		return err
	}
	role, err := server.ParseRole(q.Role)
	if err == nil {
		err = auth.CheckAccountName(q.Name)
	}
	if err != nil {
		return wire.BadRequest("bad_request", err.Error())
	}
	u, err := s.store.AddUser(r.Context(), q.Name, role, time.Now())
	if err != nil {
		return err
	}
	s.logOf(r).Info("user added", "user", u.Name, "role", u.Role, "by", who.User.Name)
	s.answer(w, http.StatusCreated, answerUser(u))
	return nil
}

// changeUser is PATCH /api/users/{name} {role, disabled}.
func (s *Server) changeUser(w http.ResponseWriter, r *http.Request, who server.Key) error {
	var q struct {
		Role     *string `json:"role"`
		Disabled *bool   `json:"disabled"`
	}
	if err := s.readJSON(w, r, &q); err != nil {
		return err
	}
	u, err := s.store.FindUser(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	if q.Role != nil {
		role, err := server.ParseRole(*q.Role)
		if err != nil {
			return wire.BadRequest("bad_request", err.Error())
		}
		if err := s.access.SetRole(r.Context(), u, role); err != nil {
			return err
		}
	}
	if q.Disabled != nil {
		if err := s.access.Disable(r.Context(), u, *q.Disabled); err != nil {
			return err
		}
	}
	if u, err = s.store.FindUser(r.Context(), u.Name); err != nil {
		return err
	}
	s.logOf(r).Info("user changed", "user", u.Name, "role", u.Role, "disabled", !u.Disabled.IsZero(), "by", who.User.Name)
	s.answer(w, http.StatusOK, answerUser(u))
	return nil
}

type keyAnswer struct {
	Name    string     `json:"name"`
	User    string     `json:"user"`
	Created time.Time  `json:"created"`
	Used    *time.Time `json:"last_used"`     // null: never
	Revoked *time.Time `json:"revoked"`       // null: never; may lie ahead
	Key     string     `json:"key,omitempty"` // shown once, when it is made
}

func answerKey(k server.Key) keyAnswer {
	return keyAnswer{k.Name, k.User.Name, k.Created, momentOrNull(k.Used), momentOrNull(k.Revoked), ""}
}

// listKeys is GET /api/keys?user: the caller's own keys; an owner sees all.
func (s *Server) listKeys(w http.ResponseWriter, r *http.Request, who server.Key) error {
	list, err := s.keysOf(r, who)
	if err != nil {
		return err
	}
	a := struct {
		Keys []keyAnswer `json:"keys"`
	}{each(list, answerKey)}
	s.answer(w, http.StatusOK, a)
	return nil
}

func (s *Server) keysOf(r *http.Request, who server.Key) ([]server.Key, error) {
	names, err := s.names(r.Context())
	if err != nil {
		return nil, err
	}
	f := newFilter(r.URL.Query(), names)
	user := f.user()
	if f.err != nil {
		return nil, f.err
	}
	if who.User.Role != server.Owner {
		if user != 0 && user != who.User.ID {
			return nil, nil
		}
		user = who.User.ID
	}
	if user == unknownUser {
		return nil, nil
	}
	return s.store.Keys(r.Context(), user)
}

// addKey is POST /api/keys {name, user}: for the caller, or by an owner for anyone.
func (s *Server) addKey(w http.ResponseWriter, r *http.Request, who server.Key) error {
	var q struct {
		Name string `json:"name"`
		User string `json:"user"`
	}
	if err := s.readJSON(w, r, &q); err != nil {
		return err
	}
	if err := auth.CheckAccountName(q.Name); err != nil {
		return wire.BadRequest("bad_request", err.Error())
	}
	user, err := s.someone(r.Context(), who, q.User)
	if err != nil {
		return err
	}
	key, hash := auth.NewKey()
	k := server.Key{Name: q.Name, User: user, Created: time.Now().UTC()}
	if err := s.store.AddKey(r.Context(), user.ID, k.Name, hash, k.Created); err != nil {
		return err
	}
	s.logOf(r).Info("key added", "key", k.Name, "user", user.Name, "by", who.User.Name)
	a := answerKey(k)
	a.Key = key
	s.answer(w, http.StatusCreated, a)
	return nil
}

// someone returns the named user; the caller for "". Only an owner may act for others.
func (s *Server) someone(ctx context.Context, who server.Key, name string) (server.User, error) {
	if name == "" || name == who.User.Name {
		return who.User, nil
	}
	if who.User.Role != server.Owner {
		return server.User{}, fmt.Errorf("user %q: %w", name, server.ErrNotFound)
	}
	return s.store.FindUser(ctx, name)
}

// ownKey returns the named key if it belongs to the caller or the caller is an owner.
func (s *Server) ownKey(r *http.Request, who server.Key) (server.Key, error) {
	user := who.User.ID
	if who.User.Role == server.Owner {
		user = 0
	}
	name := r.PathValue("name")
	list, err := s.store.Keys(r.Context(), user)
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

// revokeKey is DELETE /api/keys/{name}: at once and permanently.
func (s *Server) revokeKey(w http.ResponseWriter, r *http.Request, who server.Key) error {
	k, err := s.ownKey(r, who)
	if err != nil {
		return err
	}
	if err := s.store.RevokeKey(r.Context(), k.Name, time.Now()); err != nil {
		return err
	}
	s.logOf(r).Info("key revoked", "key", k.Name, "by", who.User.Name)
	if k, err = s.ownKey(r, who); err != nil {
		return err
	}
	s.answer(w, http.StatusOK, answerKey(k))
	return nil
}

// rotateKey is POST /api/keys/{name}/rotate {grace}: another key of that name; the old one works until grace is over.
func (s *Server) rotateKey(w http.ResponseWriter, r *http.Request, who server.Key) error {
	var q struct {
		Grace string `json:"grace"`
	}
	if err := s.readJSON(w, r, &q); err != nil {
		return err
	}
	grace, err := auth.ParseGrace(q.Grace)
	if err != nil {
		return wire.BadRequest("bad_request", err.Error())
	}
	k, err := s.ownKey(r, who)
	if err != nil {
		return err
	}
	if !k.Revoked.IsZero() {
		return wire.Refuse(http.StatusConflict, "revoked", "the key is revoked; make a new one")
	}
	key, hash := auth.NewKey()
	now := time.Now().UTC()
	if err := s.store.RotateKey(r.Context(), k.Name, hash, now, now.Add(grace)); err != nil {
		return err
	}
	s.logOf(r).Info("key rotated", "key", k.Name, "by", who.User.Name)
	if k, err = s.ownKey(r, who); err != nil {
		return err
	}
	a := answerKey(k)
	a.Key = key
	s.answer(w, http.StatusOK, a)
	return nil
}
