package web

import (
	"context"
	"errors"
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
