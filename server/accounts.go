package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxAccountName bounds names of users and keys, in bytes.
const maxAccountName = 100

// CheckAccountName says what is wrong with a name for a user or a key.
func CheckAccountName(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case len(name) > maxAccountName:
		return fmt.Errorf("the name is longer than %d bytes", maxAccountName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("the name has control characters or is not UTF-8")
	case strings.TrimSpace(name) != name:
		return errors.New("the name begins or ends with a space")
	}
	return nil
}

// ParseRole reads a role's name.
func ParseRole(s string) (Role, error) {
	switch r := Role(s); r {
	case Owner, Member, Viewer:
		return r, nil
	}
	return "", fmt.Errorf("%q is no role: want owner, member or viewer", s)
}

type userAnswer struct {
	Name     string     `json:"name"`
	Role     Role       `json:"role"`
	Created  time.Time  `json:"created"`
	Disabled *time.Time `json:"disabled"` // null: may act
}

func answerUser(u User) userAnswer {
	return userAnswer{u.Name, u.Role, u.Created, momentOrNull(u.Disabled)}
}

// me is GET /api/me: whose key it is.
func (s *Server) me(w http.ResponseWriter, _ *http.Request, who Key) error {
	s.answer(w, http.StatusOK, struct {
		User userAnswer `json:"user"`
		Key  keyAnswer  `json:"key"`
	}{answerUser(who.User), answerKey(who)})
	return nil
}

// users is GET /api/users.
func (s *Server) users(w http.ResponseWriter, r *http.Request, _ Key) error {
	list, err := s.store.Users(r.Context())
	if err != nil {
		return err
	}
	a := struct {
		Users []userAnswer `json:"users"`
	}{make([]userAnswer, 0, len(list))}
	for _, u := range list {
		a.Users = append(a.Users, answerUser(u))
	}
	s.answer(w, http.StatusOK, a)
	return nil
}

// addUser is POST /api/users {name, role}.
func (s *Server) addUser(w http.ResponseWriter, r *http.Request, who Key) error {
	var q struct {
		Name string `json:"name"`
		Role string `json:"role"`
	}
	if err := s.readJSON(w, r, &q); err != nil {
		return err
	}
	role, err := ParseRole(q.Role)
	if err == nil {
		err = CheckAccountName(q.Name)
	}
	if err != nil {
		return badRequest("bad_request", err.Error())
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
func (s *Server) changeUser(w http.ResponseWriter, r *http.Request, who Key) error {
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
		role, err := ParseRole(*q.Role)
		if err != nil {
			return badRequest("bad_request", err.Error())
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

func answerKey(k Key) keyAnswer {
	return keyAnswer{k.Name, k.User.Name, k.Created, momentOrNull(k.Used), momentOrNull(k.Revoked), ""}
}

// listKeys is GET /api/keys?user: one's own; an owner sees everybody's.
func (s *Server) listKeys(w http.ResponseWriter, r *http.Request, who Key) error {
	list, err := s.keysOf(r, who)
	if err != nil {
		return err
	}
	a := struct {
		Keys []keyAnswer `json:"keys"`
	}{make([]keyAnswer, 0, len(list))}
	for _, k := range list {
		a.Keys = append(a.Keys, answerKey(k))
	}
	s.answer(w, http.StatusOK, a)
	return nil
}

func (s *Server) keysOf(r *http.Request, who Key) ([]Key, error) {
	names, err := s.names(r.Context())
	if err != nil {
		return nil, err
	}
	f := newFilter(r.URL.Query(), names)
	user := f.user()
	if f.err != nil {
		return nil, f.err
	}
	if who.User.Role != Owner {
		if user != 0 && user != who.User.ID {
			return nil, nil
		}
		user = who.User.ID
	}
	if user == nobody {
		return nil, nil
	}
	return s.store.Keys(r.Context(), user)
}

// addKey is POST /api/keys {name, user}: for oneself, or by an owner for anybody.
func (s *Server) addKey(w http.ResponseWriter, r *http.Request, who Key) error {
	var q struct {
		Name string `json:"name"`
		User string `json:"user"`
	}
	if err := s.readJSON(w, r, &q); err != nil {
		return err
	}
	if err := CheckAccountName(q.Name); err != nil {
		return badRequest("bad_request", err.Error())
	}
	user, err := s.someone(r.Context(), who, q.User)
	if err != nil {
		return err
	}
	key, hash := NewKey()
	k := Key{Name: q.Name, User: user, Created: time.Now().UTC()}
	if err := s.store.AddKey(r.Context(), user.ID, k.Name, hash, k.Created); err != nil {
		return err
	}
	s.logOf(r).Info("key added", "key", k.Name, "user", user.Name, "by", who.User.Name)
	a := answerKey(k)
	a.Key = key
	s.answer(w, http.StatusCreated, a)
	return nil
}

// someone is the named user, oneself for "". Only an owner may act for others.
func (s *Server) someone(ctx context.Context, who Key, name string) (User, error) {
	if name == "" || name == who.User.Name {
		return who.User, nil
	}
	if who.User.Role != Owner {
		return User{}, fmt.Errorf("user %q: %w", name, ErrNotFound)
	}
	return s.store.FindUser(ctx, name)
}

// ownKey is the named key, if it is one's own or one is an owner.
func (s *Server) ownKey(r *http.Request, who Key) (Key, error) {
	user := who.User.ID
	if who.User.Role == Owner {
		user = 0
	}
	name := r.PathValue("name")
	list, err := s.store.Keys(r.Context(), user)
	if err != nil {
		return Key{}, err
	}
	for _, k := range list {
		if k.Name == name {
			return k, nil
		}
	}
	return Key{}, fmt.Errorf("key %q: %w", name, ErrNotFound)
}

// revokeKey is DELETE /api/keys/{name}: at once and for good.
func (s *Server) revokeKey(w http.ResponseWriter, r *http.Request, who Key) error {
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
func (s *Server) rotateKey(w http.ResponseWriter, r *http.Request, who Key) error {
	var q struct {
		Grace string `json:"grace"`
	}
	if err := s.readJSON(w, r, &q); err != nil {
		return err
	}
	grace, err := ParseGrace(q.Grace)
	if err != nil {
		return badRequest("bad_request", err.Error())
	}
	k, err := s.ownKey(r, who)
	if err != nil {
		return err
	}
	if !k.Revoked.IsZero() {
		return &refusal{http.StatusConflict, "revoked", "the key is revoked; make a new one"}
	}
	key, hash := NewKey()
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

// MaxGrace is how long a rotated key may go on working.
const MaxGrace = 30 * 24 * time.Hour

// ParseGrace reads how long a rotated key goes on working: a Go duration, "" for not at all.
func ParseGrace(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > MaxGrace {
		return 0, fmt.Errorf("grace %q is not a duration from 0s to %v, such as 24h", s, MaxGrace)
	}
	return d, nil
}
