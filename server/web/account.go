package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/limit"
	"github.com/ccship/ccship/server/web/page"
)

// accountStore is what the pages read and change.
type accountStore interface {
	server.Accounts
	server.Quotas
	// Groups lists projects by machine.
	Groups(ctx context.Context, scope server.Scope, q server.GroupQuery) (server.Groups, error)
}

// accountPages are the login and account pages.
type accountPages struct {
	Quota server.Quota // of each user without limits of its own; set before Route

	rates  *limit.Rates // set before Route
	held   *heldAnswers
	site   *page.Site
	store  accountStore
	access *auth.Access
	now    func() time.Time
}

// Route adds the login form and the account page to mux.
func (p *accountPages) Route(mux *http.ServeMux) {
	mux.HandleFunc("GET /login", p.loginForm)
	mux.HandleFunc("POST /login", p.takeLogin)
	mux.HandleFunc("POST /logout", p.logout)
	mux.HandleFunc("GET /account", p.Guard(p.account))
	for path, act := range map[string]action{
		"keys":          p.addKey,
		"keys/revoke":   p.revokeKey,
		"keys/rotate":   p.rotateKey,
		"link":          p.addLink,
		"users":         owner(p.addUser),
		"users/role":    owner(p.setRole),
		"users/disable": owner(p.disableUser),
		"shares":        p.addShare,
		"shares/remove": p.removeShare,
	} {
		mux.HandleFunc("POST /account/"+path, p.Guard(p.act(act)))
	}
}

// action changes something. notice is for the reader; secret is shown once, unless it is "".
type action func(r *http.Request, who server.Login) (notice, secret string, err error)

// owner restricts an action to owners; for others it does not exist.
func owner(a action) action {
	return func(r *http.Request, who server.Login) (string, string, error) {
		if who.User.Role != server.Owner {
			return "", "", server.ErrNotFound
		}
		return a(r, who)
	}
}

// act runs an action and shows the account page.
func (p *accountPages) act(a action) page.Handler {
	return func(w http.ResponseWriter, r *http.Request, who server.Login) error {
		notice, secret, err := a(r, who)
		if errors.Is(err, server.ErrExists) {
			err = page.BadRequestError("This name is already in use.")
		}
		if err != nil {
			return err
		}
		return p.showAccount(w, r, who, notice, secret)
	}
}

type accountPage struct {
	page.Layout
	Secret   string
	Stored   server.Stored
	Quota    server.Quota // of the reader; 0: no limit
	Keys     []keyRow
	Owner    bool
	Roles    []server.Role
	Users    []server.User
	Shares   []shareRow
	Projects []server.Group // own ones, to share
}

func (p *accountPages) account(w http.ResponseWriter, r *http.Request, who server.Login) error {
	return p.showAccount(w, r, who, "", "")
}

func (p *accountPages) showAccount(w http.ResponseWriter, r *http.Request, who server.Login, notice,
	secret string) error {
	view := accountPage{Layout: p.site.Layout(r, who, "Account", "account"), Secret: secret,
		Owner: who.User.Role == server.Owner,
		Roles: []server.Role{server.Member, server.Viewer, server.Owner}}
	view.Notice, view.Here = notice, "/account"
	users, err := p.store.Users(r.Context())
	if err != nil {
		return err
	}
	names := map[int64]string{}
	for _, u := range users {
		names[u.ID] = u.Name
	}
	view.Users, view.Quota = users, p.Quota.For(who.User)
	if view.Stored, err = p.store.Stored(r.Context(), who.User.ID); err != nil {
		return err
	}
	if view.Keys, err = p.keyRows(r, who, names); err != nil {
		return err
	}
	shares, err := p.store.Shares(r.Context())
	if err != nil {
		return err
	}
	for _, s := range shares {
		if view.Owner || s.Owner == who.User.ID || s.With == who.User.ID {
			view.Shares = append(view.Shares, shareRow{s, names[s.Owner], names[s.With], view.Owner || s.Owner == who.User.ID})
		}
	}
	groups, err := p.store.Groups(r.Context(), server.Scope{User: who.User.ID}, server.GroupQuery{})
	if err != nil {
		return err
	}
	view.Projects = ownProjects(groups.List, who.User.ID)
	p.site.Render(w, http.StatusOK, "account.html", view)
	return nil
}

// formName reads the name of a new key or user.
func formName(r *http.Request) (string, error) {
	name := strings.TrimSpace(r.PostForm.Get("name"))
	if err := auth.CheckAccountName(name); err != nil {
		return "", page.BadRequestError("Choose another name: " + err.Error() + ".")
	}
	return name, nil
}

// rotateGrace is how long a rotated key's old value still works.
const rotateGrace = 24 * time.Hour

type keyRow struct {
	server.Key
	Who   string
	Valid bool
	Until time.Time // zero: for ever
}

func (p *accountPages) keyRows(r *http.Request, who server.Login, names map[int64]string) ([]keyRow, error) {
	keys, err := p.access.OwnKeys(r.Context(), who.User)
	var out []keyRow
	for _, k := range keys {
		out = append(out, keyRow{k, names[k.User.ID], k.Revoked.IsZero() || k.Revoked.After(p.now()), k.Revoked})
	}
	return out, err
}

func (p *accountPages) addKey(r *http.Request, who server.Login) (notice, secret string, err error) {
	name, err := formName(r)
	if err != nil {
		return "", "", err
	}
	key, err := p.access.AddKey(r.Context(), server.Key{User: who.User, Name: name, Created: p.now(), By: who.Key})
	return "This is the key " + name + ". Copy it now: the server keeps only a hash of it.", key, err
}

// ownKey finds the key that a form names.
func (p *accountPages) ownKey(r *http.Request, who server.Login) (server.Key, error) {
	k, err := p.access.OwnKey(r.Context(), who.User, r.PostForm.Get("name"))
	if errors.Is(err, server.ErrNotFound) {
		err = page.BadRequestError("No such key.")
	}
	return k, err
}

func (p *accountPages) revokeKey(r *http.Request, who server.Login) (notice, secret string, err error) {
	k, err := p.ownKey(r, who)
	if err != nil {
		return "", "", err
	}
	ended, err := p.store.RevokeKey(r.Context(), k.Name, p.now())
	if err != nil {
		return "", "", err
	}
	return "The key " + k.Name + " is revoked. With it ended: " + ended.String() + ".", "", nil
}

func (p *accountPages) rotateKey(r *http.Request, who server.Login) (notice, secret string, err error) {
	k, err := p.ownKey(r, who)
	if err != nil {
		return "", "", err
	}
	key, err := p.access.RotateKey(r.Context(), k.Name, p.by(who), rotateGrace)
	return "This is the new value of the key " + k.Name + ". Copy it now: the server keeps only a hash of it. " +
		"The old value works for 24 more hours.", key, err
}

// addLink makes a one-time link: for the reader, or when an owner asks, for another user.
func (p *accountPages) addLink(r *http.Request, who server.Login) (notice, secret string, err error) {
	user, err := auth.Someone(r.Context(), p.store, who.User, r.PostForm.Get("user"))
	if err != nil {
		return "", "", err
	}
	ticket, err := p.access.NewTicket(r.Context(), user, who.Key, 0)
	if errors.Is(err, auth.ErrUnauthorized) {
		return "", "", page.BadRequestError("This user is disabled.")
	}
	if err != nil {
		return "", "", err
	}
	return fmt.Sprintf("The first person to open this link is logged in as %s. It works once, within %d minutes.",
		user.Name, auth.DefaultTicket/time.Minute), p.site.Origin(r) + p.site.Base + "/login?ticket=" + ticket, nil
}

func (p *accountPages) addUser(r *http.Request, who server.Login) (notice, secret string, err error) {
	name, err := formName(r)
	if err != nil {
		return "", "", err
	}
	role, err := formRole(r)
	if err != nil {
		return "", "", err
	}
	if _, err := p.store.AddUser(r.Context(), name, role, p.by(who)); err != nil {
		return "", "", err
	}
	return "The user " + name + " can log in with a one-time link created here.", "", nil
}

// by is with which key a login does something, now.
func (p *accountPages) by(who server.Login) server.By { return server.By{Key: who.Key, At: p.now()} }

func formRole(r *http.Request) (server.Role, error) {
	role, err := server.ParseRole(r.PostForm.Get("role"))
	if err != nil {
		return "", page.BadRequestError("A role is owner, member or viewer.")
	}
	return role, nil
}

// otherUser is the user that an owner changes, never the owner itself: a server must keep its last owner.
func (p *accountPages) otherUser(r *http.Request, who server.Login) (server.User, error) {
	u, err := p.store.FindUser(r.Context(), r.PostForm.Get("user"))
	if err != nil {
		return u, err
	}
	if u.ID == who.User.ID {
		return u, page.BadRequestError("You cannot do this to yourself; ask another owner.")
	}
	return u, nil
}

func (p *accountPages) setRole(r *http.Request, who server.Login) (notice, secret string, err error) {
	u, err := p.otherUser(r, who)
	if err != nil {
		return "", "", err
	}
	role, err := formRole(r)
	if err != nil {
		return "", "", err
	}
	return u.Name + " is now " + string(role) + ".", "", p.store.SetRole(r.Context(), u.ID, role, p.by(who))
}

func (p *accountPages) disableUser(r *http.Request, who server.Login) (notice, secret string, err error) {
	u, err := p.otherUser(r, who)
	if err != nil {
		return "", "", err
	}
	disable := r.PostForm.Get("enable") == ""
	notice = u.Name + " is enabled."
	if disable {
		notice = u.Name + " is disabled: keys and logins are refused."
	}
	return notice, "", p.store.DisableUser(r.Context(), u.ID, disable, p.by(who))
}

type shareRow struct {
	server.Share
	OwnerName, WithName string
	Mine                bool
}

// ownProjects lists a user's projects, each once although it may be on several machines.
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

// formShare reads which project is shared with which user. Members share only their own.
func (p *accountPages) formShare(r *http.Request, who server.Login) (server.Share, string, error) {
	from, err := auth.Someone(r.Context(), p.store, who.User, r.PostForm.Get("owner"))
	if err != nil {
		return server.Share{}, "", err
	}
	with, err := p.store.FindUser(r.Context(), r.PostForm.Get("with"))
	if errors.Is(err, server.ErrNotFound) {
		return server.Share{}, "", page.BadRequestError("No such user.")
	}
	if err == nil && with.ID == from.ID {
		err = page.BadRequestError("You cannot share a project with its owner.")
	}
	if err != nil {
		return server.Share{}, "", err
	}
	s, err := auth.FindShare(r.Context(), p.store, from, with, r.PostForm.Get("project"))
	if several, is := errors.AsType[*auth.AmbiguousProjectError](err); is {
		err = page.BadRequestError(several.Error())
	}
	s.Created, s.By = p.now(), who.Key
	return s, with.Name, err
}

func (p *accountPages) addShare(r *http.Request, who server.Login) (notice, secret string, err error) {
	s, with, err := p.formShare(r, who)
	if err != nil {
		return "", "", err
	}
	if s.Project == "" {
		return "", "", page.BadRequestError("No such project.")
	}
	s.Documents = r.PostForm.Get("documents") != ""
	how := "without"
	if s.Documents {
		how = "with"
	}
	notice = s.Project + " is shared with " + with + ", " + how + " its linked documents."
	return notice, "", p.access.AddShare(r.Context(), s)
}

func (p *accountPages) removeShare(r *http.Request, who server.Login) (notice, secret string, err error) {
	s, with, err := p.formShare(r, who)
	if err != nil {
		return "", "", err
	}
	return "No longer shared with " + with + ".", "", p.store.RemoveShare(r.Context(), s)
}
