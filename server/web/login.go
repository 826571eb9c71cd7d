package web

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ccship/ccship/server"
)

const (
	cookieName  = "ccship_login"
	loginFor    = 30 * 24 * time.Hour
	maxLogins   = 1000
	maxFormSize = 4 << 10
)

// logins remembers who is logged in: random tokens, each for one key. They are kept in memory; a restart asks for
// the key again. The zero value is empty. Safe for concurrent use.
type logins struct {
	mu   sync.Mutex
	list map[[32]byte]login // by sha256 of the token; guarded by mu
}

type login struct {
	key   [32]byte // hash
	until time.Time
}

// add makes a token for a key. When there are too many, the one that ends first goes.
func (l *logins) add(key [32]byte, now time.Time) (token string) {
	token = rand.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.list == nil {
		l.list = map[[32]byte]login{}
	}
	if len(l.list) >= maxLogins {
		var first [32]byte
		until := now.Add(2 * loginFor)
		for id, x := range l.list {
			if x.until.Before(until) {
				first, until = id, x.until
			}
		}
		delete(l.list, first)
	}
	l.list[sha256.Sum256([]byte(token))] = login{key, now.Add(loginFor)}
	return token
}

func (l *logins) find(token string, now time.Time) (key [32]byte, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x, ok := l.list[sha256.Sum256([]byte(token))]
	return x.key, ok && now.Before(x.until)
}

func (l *logins) remove(token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.list, sha256.Sum256([]byte(token)))
}

// guard lets a page be seen by who is logged in, with a key that is still valid.
func (v *Viewer) guard(page http.HandlerFunc) http.HandlerFunc {
	if v.Open {
		return page
	}
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := r.Cookie(cookieName)
		if err != nil {
			v.askKey(w, r, "")
			return
		}
		key, ok := v.logins.find(c.Value, time.Now())
		if !ok {
			v.askKey(w, r, "")
			return
		}
		switch _, err := v.keys.Check(r.Context(), key); {
		case errors.Is(err, server.ErrUnauthorized):
			v.askKey(w, r, "This key is not valid any more.")
		case err != nil:
			v.broken(w, err)
		default:
			page(w, r)
		}
	}
}

type loginPage struct{ Message, Next string }

// askKey shows the form in place of the page, which comes after the login.
func (v *Viewer) askKey(w http.ResponseWriter, r *http.Request, message string) {
	v.render(w, http.StatusUnauthorized, "login.html", loginPage{message, r.URL.RequestURI()})
}

func (v *Viewer) loginForm(w http.ResponseWriter, _ *http.Request) {
	v.render(w, http.StatusOK, "login.html", loginPage{"", "/"})
}

func (v *Viewer) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxFormSize)
	if err := r.ParseForm(); err != nil {
		v.fail(w, http.StatusBadRequest, "This form could not be read.")
		return
	}
	next := localPath(r.PostForm.Get("next"))
	key := server.HashKey(strings.TrimSpace(r.PostForm.Get("key")))
	_, err := v.keys.Check(r.Context(), key)
	if errors.Is(err, server.ErrUnauthorized) {
		v.render(w, http.StatusUnauthorized, "login.html", loginPage{"This is not a valid key.", next})
		return
	}
	if err != nil {
		v.broken(w, err)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: v.logins.add(key, time.Now()), Path: "/", MaxAge: int(loginFor / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	})
	http.Redirect(w, r, next, http.StatusSeeOther)
}

func (v *Viewer) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(cookieName); err == nil {
		v.logins.remove(c.Value)
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Path: "/", MaxAge: -1, HttpOnly: true,
		SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// localPath keeps a login from leading to another site.
func localPath(p string) string {
	if !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || strings.ContainsAny(p, "\\\r\n\t") {
		return "/"
	}
	return p
}
