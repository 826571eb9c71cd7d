package web

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/web/page"
)

// addLink makes a one-time link: for the reader, or when an owner asks, for another user.
func (p *accountPages) addLink(r *http.Request, who server.Login) (notice, secret string, err error) {
	user := who.User
	if name := r.PostForm.Get("user"); name != "" && name != user.Name {
		if who.User.Role != server.Owner {
			return "", "", server.ErrNotFound
		}
		if user, err = p.store.FindUser(r.Context(), name); err != nil {
			return "", "", err
		}
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
