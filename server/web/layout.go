package web

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
)

const (
	themeCookie = "ccship_theme"
	zoneCookie  = "ccship_zone" // minutes east of UTC, as the browser tells
	maxForm     = 16 << 10
)

// layout is what every page has around it.
type layout struct {
	Title   string
	Section string // the entry of the navigation that is marked
	Reader  server.User
	Open    bool
	Known   bool   // somebody is logged in, or nobody has to
	Theme   string // "dark", "light", or "" for what the system says
	Here    string // this page, to come back to
	Follow  bool   // new lines are told
	Query   string // in the search field
	Notice  string
}

func (v *Viewer) layout(r *http.Request, who server.Login, title, section string) layout {
	return layout{
		Title: title, Section: section, Reader: who.User, Open: v.Open, Known: v.Open || who.User.ID != 0,
		Theme: theme(r), Here: r.URL.RequestURI(), Follow: v.Hub != nil,
	}
}

func theme(r *http.Request) string {
	if c, err := r.Cookie(themeCookie); err == nil && (c.Value == "dark" || c.Value == "light") {
		return c.Value
	}
	return ""
}

// setTheme is POST /theme: the look that is kept, or with "auto" the system's.
func (v *Viewer) setTheme(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		v.fail(w, r, http.StatusBadRequest, "The form is invalid.")
		return
	}
	c := http.Cookie{Name: themeCookie, Value: r.PostForm.Get("theme"), Path: v.Base + "/", MaxAge: 365 * 24 * 3600,
		SameSite: http.SameSiteLaxMode, Secure: v.access.Secure(r)}
	if c.Value != "dark" && c.Value != "light" {
		c.Value, c.MaxAge = "", -1
	}
	http.SetCookie(w, &c)
	http.Redirect(w, r, v.Base+localPath(r.PostForm.Get("next")), http.StatusSeeOther)
}

// localPath keeps a form from leading to another site.
func localPath(p string) string {
	if !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || strings.ContainsAny(p, "\\\r\n\t") {
		return "/"
	}
	return p
}

// zone is how far east of UTC the browser is.
func zone(r *http.Request) time.Duration {
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

// file is an asset that browsers get.
type file struct {
	body    []byte
	kind    string
	version string // of its content, part of its address
}

// readFiles takes the style sheet and the script out of the assets.
func readFiles() (map[string]file, error) {
	kinds := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	list, err := fs.ReadDir(assets, "assets")
	if err != nil {
		return nil, fmt.Errorf("list assets: %w", err)
	}
	out := map[string]file{}
	for _, e := range list {
		kind := kinds[path.Ext(e.Name())]
		if kind == "" {
			continue
		}
		b, err := assets.ReadFile("assets/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("read asset: %w", err)
		}
		sum := sha256.Sum256(b)
		out[e.Name()] = file{b, kind, base64.RawURLEncoding.EncodeToString(sum[:9])}
	}
	return out, nil
}

func (v *Viewer) asset(w http.ResponseWriter, r *http.Request) {
	f, ok := v.files[r.PathValue("name")]
	if !ok {
		v.fail(w, r, http.StatusNotFound, "No such file.")
		return
	}
	w.Header().Set("Content-Type", f.kind)
	if r.URL.Query().Get("v") == f.version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(f.body) // a browser that has gone is told nothing
}

// assetURL is an asset's address, which changes with its content.
func (v *Viewer) assetURL(name string) string {
	return v.Base + "/assets/" + name + "?v=" + url.QueryEscape(v.files[name].version)
}
