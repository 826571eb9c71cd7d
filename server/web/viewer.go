// Package web serves the pages: the list of sessions, a conversation to read and to follow, the details of each line,
// search, usage, accounts. The server renders them; a small script adds keys and following. Pages load nothing from
// other hosts, and nothing in a conversation is ever run.
//
// It reads through server.Library and knows no database. Package transcript interprets records; package markup turns
// text into HTML.
package web

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/limit"
	"github.com/ccship/ccship/server/web/markup"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/redact"
)

//go:embed assets
var assets embed.FS

// Store is what pages read, and what the account page changes.
type Store interface {
	server.Library
	server.Accounts
	server.Quotas
	server.Marks
	server.ShareLinks
	server.SavedViews
	server.Retention
}

// Viewer serves the pages. Set the exported fields before Handler.
type Viewer struct {
	*page.Site
	// Hub announces new lines; nil: pages do not follow.
	Hub *server.Hub
	// Prices is what tokens cost; nil: the list that comes with the program.
	Prices *transcript.Prices
	// Quota is how much a user without limits of its own may store.
	Quota server.Quota
	// Rates bounds how many pages a user asks for, together with requests of the API; nil: no limit.
	Rates *limit.Rates
	// Now is the clock of the pages; New sets time.Now.
	Now func() time.Time

	store    Store
	access   *auth.Access
	accounts *accountPages
	shared   *sharePages

	coloured markup.Cache
	secrets  *thread.Secrets
}

// New makes a viewer of store. access decides who may log in.
func New(store Store, access *auth.Access) (*Viewer, error) {
	v := &Viewer{store: store, access: access, Now: time.Now}
	var err error
	if v.Site, err = page.New(assets, access, v.functions()); err != nil {
		return nil, err
	}
	// Tokens stand in shared pages instead of secrets, and say no more than that: the key is of this process.
	masker, err := redact.New(redact.NewKey())
	if err != nil {
		return nil, fmt.Errorf("load rules of secrets: %w", err)
	}
	held := &heldAnswers{limit.NewSlots(heldBytes, heldOfOne)}
	v.secrets, v.Users = &thread.Secrets{Masker: masker}, store
	v.shared = &sharePages{site: v.Site, store: store, access: access, masker: masker, now: time.Now,
		slots: limit.NewSlots(mostAtOnce, 0), held: held}
	v.accounts = &accountPages{site: v.Site, store: store, access: access, held: held, now: time.Now}
	return v, nil
}

// Handler serves everything below /. Call it once.
func (v *Viewer) Handler() http.Handler {
	if v.Prices == nil {
		v.Prices = transcript.DefaultPrices()
	}
	v.Follow = v.Hub != nil
	v.accounts.Quota, v.accounts.rates = v.Quota, v.Rates
	mux := http.NewServeMux()
	mux.HandleFunc("GET /assets/{name}", v.Asset)
	mux.HandleFunc("POST /theme", v.SetTheme)
	pages := map[string]page.Handler{
		"GET /sessions/{id}":                  v.conversation,
		"GET /sessions/{id}/L/{line}":         v.permalink,
		"GET /sessions/{id}/tail":             v.tail,
		"GET /sessions/{id}/prompts":          v.prompts,
		"GET /sessions/{id}/entry/{line}":     v.entry,
		"GET /sessions/{id}/bytes/{line}":     v.bytes,
		"GET /sessions/{id}/image/{line}/{n}": v.image,
		"GET /sessions/{id}/compare":          v.compare,
		"GET /sessions/{id}/export":           v.export,
		"GET /sessions/{id}/context":          v.contextOf,
		"GET /sessions/{id}/artifacts":        v.artifactsPiece,
		"POST /sessions/{id}/documents":       v.requestLink,
		"GET /sessions/{id}/document":         v.document,
		"GET /sessions/{id}/document/bytes":   v.documentBytes,
		"GET /sessions/{id}/document/image":   v.documentImage,
		"GET /sessions/{id}/document/compare": v.compareVersions,
		"GET /sessions/{id}/file":             v.file,
		"GET /search":                         v.search,
		"GET /search/names":                   v.names,
		"GET /usage":                          v.usage,
		"GET /drops":                          v.drops,
		"GET /why":                            v.why,
		"GET /events":                         v.events,
	}
	first := &homePages{site: v.Site, store: v.store, now: v.Now, Prices: v.Prices}
	maps.Copy(pages, first.Routes())
	maps.Copy(pages, v.shared.Routes())
	for pattern, show := range pages {
		mux.HandleFunc(pattern, v.accounts.Guard(show))
	}
	v.accounts.Route(mux)
	v.shared.rates = v.Rates
	v.shared.Route(mux)
	mux.HandleFunc("/", v.accounts.Missing)
	return v.Harden(http.NewCrossOriginProtection().Handler(mux))
}

const (
	cookieName = "ccship_login"
	// recheck is how long an answer is written by what was known of its login.
	recheck = time.Second
)

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
			defer limit.Known(r.Context(), who.User.ID)()
			r = page.Of(r, who)
			if p.rates.Take(who.User.ID, time.Now()) != nil {
				w.Header().Set("Retry-After", "1")
				p.site.Fail(w, r, http.StatusTooManyRequests,
					"You made more requests in a minute than this server allows. Reload in a moment.")
				return
			}
			now := func() (server.User, error) {
				l, err := p.Login(r)
				return l.User, err
			}
			err = show(p.held.of(&auth.Answer{ResponseWriter: w, User: who.User, Who: now, Every: recheck}, who.User.ID), r, who)
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

const heartbeat = 20 * time.Second

// changeEvent is a change as pages receive it.
type changeEvent struct {
	About      string `json:"about,omitempty"` // "checkpoints", "documents"; else lines
	Session    string `json:"session"`
	Machine    string `json:"machine"`
	Owner      int64  `json:"owner"`
	Generation int64  `json:"generation"`
	From       int64  `json:"from"`
	To         int64  `json:"to"`
}

// events is GET /events?session&machine&owner: server-sent events that say where there are new lines, of one session
// or of all that the reader may see. {} says that anything may have changed.
func (v *Viewer) events(w http.ResponseWriter, r *http.Request, who server.Login) error {
	if v.Hub == nil {
		return server.ErrNotFound
	}
	sight, err := v.access.Sight(r.Context(), func(context.Context) (server.User, error) {
		l, err := v.accounts.Login(r)
		return l.User, err
	})
	if err != nil {
		return err
	}
	leave, err := v.Hub.Admit(who.User.ID)
	if err != nil {
		return err
	}
	defer leave()
	q := r.URL.Query()
	owner := page.Number(q.Get(thread.UserParam), 0)
	changes := v.Hub.Listen(r.Context(), func(c server.Change) bool {
		return sight.Sees(c) && (!q.Has("session") || c.SessionID == q.Get("session") && c.Machine == q.Get("machine") &&
			(owner == 0 || c.Owner == owner))
	})
	to := limit.NewEvents(w)
	if to.Send(": hello\nretry: 3000\n\n") != nil {
		return nil // gone: the answer has begun, and an error page is no longer possible
	}
	sight.Follow(r.Context(), changes, heartbeat, func(c server.Change) error { return sendChange(to, c) },
		func() error { return to.Send(": \n\n") })
	return nil
}

func sendChange(to limit.Events, c server.Change) error {
	if c.Stream == 0 {
		return to.Send("data: {}\n\n")
	}
	b, err := json.Marshal(changeEvent{c.About, c.SessionID, c.Machine, c.Owner, c.Generation, c.From, c.To})
	if err != nil {
		return err
	}
	return to.Send("data: " + string(b) + "\n\n")
}
