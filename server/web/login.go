package web

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/limit"

	"github.com/ccship/ccship/server/web/page"
)

const cookieName = "ccship_login"

// Guard shows a page to a reader who is logged in, and the login form to others.
func (p *accountPages) Guard(show page.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost { // before the login is checked: it may end while a slow form is read
			if err := page.ParseForm(w, r); err != nil {
				p.site.Answer(w, r, err)
				return
			}
		}
		who, err := p.Login(r)
		if errors.Is(err, auth.ErrUnauthorized) {
			p.askKey(w, r)
			return
		}
		if err == nil {
			limit.Known(r.Context())
			r = page.Of(r, who)
			if p.rates.Take(who.User.ID, time.Now()) != nil {
				w.Header().Set("Retry-After", "1")
				p.site.Fail(w, r, http.StatusTooManyRequests,
					"You made more requests in a minute than this server allows. Reload in a moment.")
				return
			}
			err = show(p.held.of(w, who.User.ID), r, who)
		}
		if err != nil {
			p.site.Answer(w, r, err)
		}
	}
}

// Missing answers addresses where there is no page.
func (p *accountPages) Missing(w http.ResponseWriter, r *http.Request) {
	if who, err := p.Login(r); err == nil {
		r = page.Of(r, who)
	}
	p.site.Missing(w, r, "There is no page at this address.")
}

// Login finds the login of a request's cookie. auth.ErrUnauthorized when there is none.
func (p *accountPages) Login(r *http.Request) (server.Login, error) {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return server.Login{}, auth.ErrUnauthorized
	}
	return p.access.Check(r.Context(), c.Value)
}

type loginPage struct {
	page.Layout
	Message, Next, Ticket string
}

// askKey shows the form instead of the page, which comes after the login.
func (p *accountPages) askKey(w http.ResponseWriter, r *http.Request) {
	next := "/"
	if r.Method == http.MethodGet {
		next = r.URL.RequestURI()
	}
	p.showForm(w, r, http.StatusUnauthorized, loginPage{Next: next})
}

func (p *accountPages) showForm(w http.ResponseWriter, r *http.Request, status int, form loginPage) {
	form.Layout = p.site.Layout(r, server.Login{}, "Log in", "")
	p.site.Render(w, status, "login.html", form)
}

// loginForm is GET /login. With ?ticket it only asks: a mail program that fetches a one-time link must not use it up.
func (p *accountPages) loginForm(w http.ResponseWriter, r *http.Request) {
	p.showForm(w, r, http.StatusOK, loginPage{Next: page.LocalPath(r.URL.Query().Get("next")),
		Ticket: r.URL.Query().Get("ticket")})
}

// takeLogin is POST /login with a key or a ticket.
func (p *accountPages) takeLogin(w http.ResponseWriter, r *http.Request) {
	if err := page.ParseForm(w, r); err != nil {
		p.site.Answer(w, r, err)
		return
	}
	next, remote := page.LocalPath(r.PostForm.Get("next")), p.access.Remote(r)
	var token string
	var err error
	wrong := "This is not a valid key."
	if ticket := r.PostForm.Get("ticket"); ticket != "" {
		token, _, err = p.access.LoginWithTicket(r.Context(), remote, ticket)
		wrong = "This link has expired or was already used. Ask for a new one, or log in with a key."
	} else {
		token, _, err = p.access.Login(r.Context(), remote, strings.TrimSpace(r.PostForm.Get("key")))
	}
	var tooMany *auth.TooManyError
	switch {
	case err == nil:
		p.setCookie(w, r, token, int(auth.LoginFor/time.Second))
		http.Redirect(w, r, p.site.Base+next, http.StatusSeeOther)
	case errors.As(err, &tooMany):
		w.Header().Set("Retry-After", strconv.Itoa(tooMany.Seconds()))
		p.showForm(w, r, http.StatusTooManyRequests, loginPage{Next: next, Message: "Too many failed logins from this " +
			"address. Try again in " + page.Count(int64(tooMany.Seconds()), "second") + "."})
	case errors.Is(err, auth.ErrUnauthorized):
		p.showForm(w, r, http.StatusUnauthorized, loginPage{Message: wrong, Next: next})
	default:
		p.site.Answer(w, r, err)
	}
}

func (p *accountPages) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(cookieName); err == nil {
		if err := p.access.Logout(r.Context(), c.Value); err != nil {
			p.site.Answer(w, r, err)
			return
		}
	}
	p.setCookie(w, r, "", -1)
	http.Redirect(w, r, p.site.Base+"/login", http.StatusSeeOther)
}

// setCookie stores the login in the browser. It is Lax, so that links from other sites find the reader logged in; every
// change is a POST, which other sites cannot send with the cookie.
func (p *accountPages) setCookie(w http.ResponseWriter, r *http.Request, token string, seconds int) {
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: token, Path: p.site.Base + "/", MaxAge: seconds,
		HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: p.access.Secure(r)})
}
