package web

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
)

const (
	maxName = 64
	// rotateGrace is how long a rotated key's old value still works.
	rotateGrace = 24 * time.Hour
)

func (v *Viewer) routeAccounts(mux *http.ServeMux) {
	mux.HandleFunc("GET /login", v.loginForm)
	mux.HandleFunc("POST /login", v.takeLogin)
	mux.HandleFunc("POST /logout", v.logout)
	mux.HandleFunc("GET /account", v.guard(v.account))
	for path, act := range map[string]action{
		"keys":          v.addKey,
		"keys/revoke":   v.revokeKey,
		"keys/rotate":   v.rotateKey,
		"link":          v.addLink,
		"users":         owner(v.addUser),
		"users/role":    owner(v.setRole),
		"users/disable": owner(v.disableUser),
		"shares":        v.addShare,
		"shares/remove": v.removeShare,
	} {
		mux.HandleFunc("POST /account/"+path, v.guard(v.act(act)))
	}
}

// action changes something and answers what to tell the reader. secret, when it is not "", is shown once.
type action func(r *http.Request, who server.Login) (notice, secret string, err error)

// owner lets only owners do something. For others it is not there.
func owner(a action) action {
	return func(r *http.Request, who server.Login) (string, string, error) {
		if who.User.Role != server.Owner {
			return "", "", server.ErrNotFound
		}
		return a(r, who)
	}
}

// act carries an action out and shows the account page.
func (v *Viewer) act(a action) page {
	return func(w http.ResponseWriter, r *http.Request, who server.Login) error {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			return errUsage("The form is invalid.")
		}
		notice, secret, err := a(r, who)
		if errors.Is(err, server.ErrExists) {
			err = errUsage("This name is already in use.")
		}
		if err != nil {
			return err
		}
		return v.showAccount(w, r, who, notice, secret)
	}
}

type accountPage struct {
	layout
	Secret   string
	Keys     []keyRow
	Owner    bool
	Roles    []server.Role
	Users    []server.User
	Shares   []shareRow
	Projects []server.Group // own ones, to share
}

type keyRow struct {
	server.Key
	Who   string
	Valid bool
	Until time.Time // zero: for ever
}

type shareRow struct {
	server.Share
	OwnerName, WithName string
	Mine                bool
}

func (v *Viewer) account(w http.ResponseWriter, r *http.Request, who server.Login) error {
	return v.showAccount(w, r, who, "", "")
}

func (v *Viewer) showAccount(w http.ResponseWriter, r *http.Request, who server.Login, notice, secret string) error {
	p := accountPage{layout: v.layout(r, who, "Account", "account"), Secret: secret, Owner: who.User.Role == server.Owner,
		Roles: []server.Role{server.Member, server.Viewer, server.Owner}}
	p.Notice, p.Here = notice, "/account"
	users, err := v.store.Users(r.Context())
	if err != nil {
		return err
	}
	names := map[int64]string{}
	for _, u := range users {
		names[u.ID] = u.Name
	}
	p.Users = users
	if p.Keys, err = v.keyRows(r, who, names); err != nil {
		return err
	}
	shares, err := v.store.Shares(r.Context())
	if err != nil {
		return err
	}
	for _, s := range shares {
		if p.Owner || s.Owner == who.User.ID || s.With == who.User.ID {
			p.Shares = append(p.Shares, shareRow{s, names[s.Owner], names[s.With], p.Owner || s.Owner == who.User.ID})
		}
	}
	groups, err := v.store.Groups(r.Context(), server.Scope{User: who.User.ID})
	if err != nil {
		return err
	}
	p.Projects = ownProjects(groups, who.User.ID)
	v.render(w, http.StatusOK, "account.html", p)
	return nil
}

// ownProjects is each project of a user once, whatever machines it is on.
func ownProjects(groups []server.Group, user int64) []server.Group {
	seen := map[string]bool{}
	var out []server.Group
	for _, g := range groups {
		if g.Owner == user && !seen[g.ProjectHash] {
			seen[g.ProjectHash] = true
			out = append(out, g)
		}
	}
	return out
}

func (v *Viewer) keyRows(r *http.Request, who server.Login, names map[int64]string) ([]keyRow, error) {
	keys, err := v.store.Keys(r.Context(), who.User.ID)
	if who.User.Role == server.Owner {
		keys, err = v.store.Keys(r.Context(), 0)
	}
	var out []keyRow
	for _, k := range keys {
		out = append(out, keyRow{k, names[k.User.ID], k.Revoked.IsZero() || k.Revoked.After(v.now()), k.Revoked})
	}
	return out, err
}

// formName reads a name; it can stand in a command line.
func formName(r *http.Request, field string) (string, error) {
	s := strings.TrimSpace(r.PostForm.Get(field))
	if s == "" || len(s) > maxName || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return "", errUsage(fmt.Sprintf("A name has 1 to %d characters, on one line.", maxName))
	}
	return s, nil
}

func (v *Viewer) addKey(r *http.Request, who server.Login) (notice, secret string, err error) {
	name, err := formName(r, "name")
	if err != nil {
		return "", "", err
	}
	key, hash := auth.NewKey()
	if err := v.store.AddKey(r.Context(), who.User.ID, name, hash, v.now()); err != nil {
		return "", "", err
	}
	return "This is the key " + name + ". Copy it now: the server keeps only a hash of it.", key, nil
}

// ownKey finds a key that the reader may change: an own one; for owners any.
func (v *Viewer) ownKey(r *http.Request, who server.Login) (server.Key, error) {
	user := who.User.ID
	if who.User.Role == server.Owner {
		user = 0
	}
	keys, err := v.store.Keys(r.Context(), user)
	if err != nil {
		return server.Key{}, err
	}
	for _, k := range keys {
		if k.Name == r.PostForm.Get("name") {
			return k, nil
		}
	}
	return server.Key{}, errUsage("No such key.")
}

func (v *Viewer) revokeKey(r *http.Request, who server.Login) (notice, secret string, err error) {
	k, err := v.ownKey(r, who)
	if err != nil {
		return "", "", err
	}
	if err := v.store.RevokeKey(r.Context(), k.Name, v.now()); err != nil {
		return "", "", err
	}
	return "The key " + k.Name + " is revoked.", "", nil
}

func (v *Viewer) rotateKey(r *http.Request, who server.Login) (notice, secret string, err error) {
	k, err := v.ownKey(r, who)
	if err != nil {
		return "", "", err
	}
	key, hash := auth.NewKey()
	if err := v.store.RotateKey(r.Context(), k.Name, hash, v.now(), v.now().Add(rotateGrace)); err != nil {
		return "", "", err
	}
	return "This is the new value of the key " + k.Name + ". Copy it now: the server keeps only a hash of it. The old value works for 24 more hours.", key, nil
}

// addLink makes a one-time link: for oneself, or as an owner for somebody else.
func (v *Viewer) addLink(r *http.Request, who server.Login) (notice, secret string, err error) {
	user := who.User
	if name := r.PostForm.Get("user"); name != "" && name != user.Name {
		if who.User.Role != server.Owner {
			return "", "", server.ErrNotFound
		}
		if user, err = v.store.FindUser(r.Context(), name); err != nil {
			return "", "", err
		}
	}
	ticket, err := v.access.NewTicket(r.Context(), user, who.Key, 0)
	if errors.Is(err, auth.ErrUnauthorized) {
		return "", "", errUsage("This user is disabled.")
	}
	if err != nil {
		return "", "", err
	}
	scheme := "http://"
	if v.access.Secure(r) {
		scheme = "https://"
	}
	return fmt.Sprintf("The first person to open this link is logged in as %s. It works once, within %d minutes.",
		user.Name, auth.DefaultTicket/time.Minute), scheme + r.Host + v.Base + "/login?ticket=" + ticket, nil
}

func (v *Viewer) addUser(r *http.Request, _ server.Login) (notice, secret string, err error) {
	name, err := formName(r, "name")
	if err != nil {
		return "", "", err
	}
	role, err := formRole(r)
	if err != nil {
		return "", "", err
	}
	if _, err := v.store.AddUser(r.Context(), name, role, v.now()); err != nil {
		return "", "", err
	}
	return "The user " + name + " can log in with a one-time link created here.", "", nil
}

func formRole(r *http.Request) (server.Role, error) {
	switch role := server.Role(r.PostForm.Get("role")); role {
	case server.Owner, server.Member, server.Viewer:
		return role, nil
	}
	return "", errUsage("A role is owner, member or viewer.")
}

// otherUser is who an owner wants to change. Nobody changes himself: a server must not lose its last owner.
func (v *Viewer) otherUser(r *http.Request, who server.Login) (server.User, error) {
	u, err := v.store.FindUser(r.Context(), r.PostForm.Get("user"))
	if err != nil {
		return u, err
	}
	if u.ID == who.User.ID {
		return u, errUsage("You cannot do this to yourself; ask another owner.")
	}
	return u, nil
}

func (v *Viewer) setRole(r *http.Request, who server.Login) (notice, secret string, err error) {
	u, err := v.otherUser(r, who)
	if err != nil {
		return "", "", err
	}
	role, err := formRole(r)
	if err != nil {
		return "", "", err
	}
	return u.Name + " is now " + string(role) + ".", "", v.store.SetRole(r.Context(), u.ID, role)
}

func (v *Viewer) disableUser(r *http.Request, who server.Login) (notice, secret string, err error) {
	u, err := v.otherUser(r, who)
	if err != nil {
		return "", "", err
	}
	if r.PostForm.Get("enable") != "" {
		return u.Name + " may act again.", "", v.store.DisableUser(r.Context(), u.ID, time.Time{})
	}
	return u.Name + " is disabled: keys and logins are refused.", "", v.store.DisableUser(r.Context(), u.ID, v.now())
}

// formShare reads whose project is shared with whom. Members share their own.
func (v *Viewer) formShare(r *http.Request, who server.Login) (server.Share, string, error) {
	s := server.Share{Owner: who.User.ID, ProjectHash: r.PostForm.Get("project"), Created: v.now()}
	if from := r.PostForm.Get("owner"); from != "" && from != who.User.Name {
		u, err := v.store.FindUser(r.Context(), from)
		if err != nil || who.User.Role != server.Owner {
			return s, "", server.ErrNotFound
		}
		s.Owner = u.ID
	}
	with, err := v.store.FindUser(r.Context(), r.PostForm.Get("with"))
	if errors.Is(err, server.ErrNotFound) {
		return s, "", errUsage("No such user.")
	}
	if err != nil {
		return s, "", err
	}
	if s.With = with.ID; s.With == s.Owner {
		return s, "", errUsage("You cannot share a project with its owner.")
	}
	return s, with.Name, nil
}

func (v *Viewer) addShare(r *http.Request, who server.Login) (notice, secret string, err error) {
	s, with, err := v.formShare(r, who)
	if err != nil {
		return "", "", err
	}
	groups, err := v.store.Groups(r.Context(), server.Scope{User: s.Owner})
	if err != nil {
		return "", "", err
	}
	for _, g := range ownProjects(groups, s.Owner) {
		if g.ProjectHash == s.ProjectHash {
			s.Project, s.Documents = g.Project, r.PostForm.Get("documents") != ""
			what := g.Project + " is shared with " + with + ", "
			if !s.Documents {
				what += "without its linked documents."
			} else {
				what += "with its linked documents."
			}
			return what, "", v.store.AddShare(r.Context(), s)
		}
	}
	return "", "", errUsage("No such project.")
}

func (v *Viewer) removeShare(r *http.Request, who server.Login) (notice, secret string, err error) {
	s, with, err := v.formShare(r, who)
	if err != nil {
		return "", "", err
	}
	return "No longer shared with " + with + ".", "", v.store.RemoveShare(r.Context(), s)
}
