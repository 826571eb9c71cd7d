package page

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
)

// Choice is one of several ways to show a page.
type Choice struct {
	Name, URL string
	On        bool
}

// Address returns a path with some of the values of q changed; "" removes a value. The list of sessions of a project
// has an address of its own.
func Address(path string, q url.Values, change ...string) string {
	next := url.Values{}
	for k, v := range q {
		if len(v) > 0 && v[0] != "" {
			next[k] = v
		}
	}
	for i := 0; i+1 < len(change); i += 2 {
		next.Set(change[i], change[i+1])
		if change[i+1] == "" {
			next.Del(change[i])
		}
	}
	if name := next.Get("project"); path == "/" && name != "" {
		path = "/p/" + url.PathEscape(name)
		next.Del("project")
	}
	if len(next) == 0 {
		return path
	}
	return path + "?" + next.Encode()
}

// zoneCookie is set by the browser: minutes east of UTC.
const zoneCookie = "ccship_zone"

// Zone returns how far east of UTC the browser is.
func Zone(r *http.Request) time.Duration {
	c, err := r.Cookie(zoneCookie)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(c.Value)
	if err != nil || n < -14*60 || n > 14*60 {
		return 0
	}
	return time.Duration(n) * time.Minute
}

// Number reads a whole number ≥ 0; anything else is absent.
func Number(s string, absent int64) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return absent
	}
	return n
}

// Users names the users whose sessions there are.
type Users interface {
	UserNames(ctx context.Context, ids []int64) (map[int64]string, error)
}

// choosePage asks whose session an address means.
type choosePage struct {
	Layout
	Session string
	Users   bool // the choices are of several users; else their ids begin alike
	Choices []choice
}

type choice struct {
	server.Address
	User, URL string
}

// choose shows the page of sessions of several users that have the id of the address. Its links are the same address
// with the user in it; of a form, the session's page.
func (s *Site) choose(w http.ResponseWriter, r *http.Request, no *server.AmbiguousError) {
	var owners []int64
	for _, x := range no.Choices {
		owners = append(owners, x.Owner)
	}
	names, err := s.Users.UserNames(r.Context(), owners)
	if err != nil {
		s.Answer(w, r, err)
		return
	}
	p := choosePage{Layout: s.Layout(r, reader(r), "Whose session?", ""), Session: no.Session}
	p.Users = true
	for _, x := range no.Choices {
		c := choice{Address: x, User: names[x.Owner]}
		to := *r.URL
		if id := r.PathValue("id"); id != "" && r.Method != http.MethodGet {
			to.Path, to.RawPath = "/", ""
			to = *to.JoinPath("sessions", id)
		}
		q := to.Query()
		if x.SessionID != no.Session && r.PathValue("id") != "" { // one of several whose ids begin so
			p.Users, p.Title = false, "Which session?"
			to.Path, to.RawPath = "/sessions/"+x.SessionID, ""
			q = url.Values{"machine": {x.Machine}}
		}
		q.Set("owner", strconv.FormatInt(x.Owner, 10))
		to.RawQuery = q.Encode()
		c.URL = s.Base + to.String()
		p.Choices = append(p.Choices, c)
	}
	s.Render(w, http.StatusConflict, "choose.html", p)
}

const themeCookie = "ccship_theme"

// Layout is what surrounds every page. Pages embed it.
type Layout struct {
	Title   string
	Section string // the current entry of the navigation
	Reader  server.User
	Known   bool   // the reader is logged in
	Theme   string // "dark", "light", or "" for the system's
	Here    string // this page, to come back to
	Server  string // scheme and host at which the browser reaches the server
	Local   bool   // they are a loopback address: no other machine reaches it
	Follow  bool   // the page can follow new lines
	Query   string // in the search field
	Notice  string
	// Unlisted keeps the page out of search engines.
	Unlisted bool
}

// Layout makes the layout of a page for its reader.
func (s *Site) Layout(r *http.Request, who server.Login, title, section string) Layout {
	return Layout{
		Title: title, Section: section, Reader: who.User, Known: who.User.ID != 0,
		Theme: theme(r), Here: r.URL.RequestURI(), Follow: s.Follow,
		Server: s.Origin(r), Local: IsLoopback(r.Host),
	}
}

func theme(r *http.Request) string {
	if c, err := r.Cookie(themeCookie); err == nil && (c.Value == "dark" || c.Value == "light") {
		return c.Value
	}
	return ""
}

// Origin returns the scheme and host at which the browser of a request reaches this server.
func (s *Site) Origin(r *http.Request) string {
	if s.access.Secure(r) {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// SetTheme is POST /theme: "dark" or "light"; anything else goes back to the system's.
func (s *Site) SetTheme(w http.ResponseWriter, r *http.Request) {
	if err := ParseForm(w, r); err != nil {
		s.Answer(w, r, err)
		return
	}
	c := http.Cookie{Name: themeCookie, Value: r.PostForm.Get("theme"), Path: s.Base + "/", MaxAge: 365 * 24 * 3600,
		SameSite: http.SameSiteLaxMode, Secure: s.access.Secure(r)}
	if c.Value != "dark" && c.Value != "light" {
		c.Value, c.MaxAge = "", -1
	}
	http.SetCookie(w, &c)
	http.Redirect(w, r, s.Base+LocalPath(r.PostForm.Get("next")), http.StatusSeeOther)
}

// maxForm is the largest form that is read, in bytes.
const maxForm = 16 << 10

// ParseForm reads a request's form, up to 16 KiB. Its error is a BadRequestError.
func ParseForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return BadRequestError("The form is invalid.")
	}
	return nil
}

// LocalPath returns p, or "/" when p could lead to another site.
func LocalPath(p string) string {
	if !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || strings.ContainsAny(p, "\\\r\n\t") {
		return "/"
	}
	return p
}
