package page

import (
	"net/http"
	"strings"

	"github.com/ccship/ccship/server"
)

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
