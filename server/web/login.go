package web

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/web/format"
)

const cookieName = "ccship_login"

// guard finds out who is reading and lets the page be seen by who is logged in.
func (v *Viewer) guard(p page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who := server.Login{User: server.User{Role: server.Owner}}
		if !v.Open {
			var err error
			who, err = v.login(r)
			if errors.Is(err, auth.ErrUnauthorized) {
				v.askKey(w, r, http.StatusUnauthorized, "")
				return
			}
			if err != nil {
				v.answer(w, r, err)
				return
			}
		}
		if err := p(w, r, who); err != nil {
			v.answer(w, r, err)
		}
	}
}

// login is the one that the request's cookie stands for.
func (v *Viewer) login(r *http.Request) (server.Login, error) {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return server.Login{}, auth.ErrUnauthorized
	}
	return v.access.Check(r.Context(), c.Value)
}

type loginPage struct {
	layout
	Message, Next, Ticket string
}

// askKey shows the form in place of the page, which comes after the login.
func (v *Viewer) askKey(w http.ResponseWriter, r *http.Request, status int, message string) {
	next := "/"
	if r.Method == http.MethodGet {
		next = r.URL.RequestURI()
	}
	v.render(w, status, "login.html", loginPage{layout: v.layout(r, server.Login{}, "Log in", ""), Message: message, Next: next})
}

// loginForm is GET /login. With ?ticket it only asks: a mail program that looks at a one-time link must not use it up.
func (v *Viewer) loginForm(w http.ResponseWriter, r *http.Request) {
	v.render(w, http.StatusOK, "login.html", loginPage{layout: v.layout(r, server.Login{}, "Log in", ""),
		Next: localPath(r.URL.Query().Get("next")), Ticket: r.URL.Query().Get("ticket")})
}

// takeLogin is POST /login with a key or a ticket.
func (v *Viewer) takeLogin(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		v.fail(w, r, http.StatusBadRequest, "The form is invalid.")
		return
	}
	next, remote := localPath(r.PostForm.Get("next")), v.access.Remote(r)
	var token string
	var err error
	wrong := "This is not a valid key."
	if ticket := r.PostForm.Get("ticket"); ticket != "" {
		token, _, err = v.access.LoginWithTicket(r.Context(), remote, ticket)
		wrong = "This link has expired or was already used. Ask for a new one, or log in with a key."
	} else {
		token, _, err = v.access.Login(r.Context(), remote, strings.TrimSpace(r.PostForm.Get("key")))
	}
	var tooMany *auth.TooMany
	switch {
	case err == nil:
		v.setCookie(w, r, token, int(auth.LoginFor/time.Second))
		http.Redirect(w, r, v.Base+next, http.StatusSeeOther)
	case errors.As(err, &tooMany):
		w.Header().Set("Retry-After", strconv.Itoa(tooMany.Seconds()))
		v.render(w, http.StatusTooManyRequests, "login.html", loginPage{layout: v.layout(r, server.Login{}, "Log in", ""),
			Message: "Too many failed logins from this address. Try again in " + format.Count(int64(tooMany.Seconds()), "second") + ".", Next: next})
	case errors.Is(err, auth.ErrUnauthorized):
		v.render(w, http.StatusUnauthorized, "login.html",
			loginPage{layout: v.layout(r, server.Login{}, "Log in", ""), Message: wrong, Next: next})
	default:
		v.answer(w, r, err)
	}
}

func (v *Viewer) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(cookieName); err == nil {
		if err := v.access.Logout(r.Context(), c.Value); err != nil {
			v.answer(w, r, err)
			return
		}
	}
	v.setCookie(w, r, "", -1)
	http.Redirect(w, r, v.Base+"/login", http.StatusSeeOther)
}

// setCookie keeps the login in the browser. Lax, so that links from elsewhere find the reader logged in; whatever
// changes something is a POST, which other sites can't send.
func (v *Viewer) setCookie(w http.ResponseWriter, r *http.Request, token string, seconds int) {
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: token, Path: v.Base + "/", MaxAge: seconds, HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: v.access.Secure(r)})
}
