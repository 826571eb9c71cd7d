package web

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/ccship/ccship/server"
)

//go:embed assets
var assets embed.FS

// Checker says whether a key is valid, by its hash. server.ErrUnauthorized when it is not.
type Checker interface {
	Check(ctx context.Context, hash [32]byte) (server.Key, error)
}

// Viewer serves the pages. Set the exported fields before Handler.
type Viewer struct {
	// Open shows everything without a login. Only for a server that listens on loopback: it then answers only to
	// loopback host names, so that no web page can have its own name point here (DNS rebinding).
	Open bool
	Log  *slog.Logger

	catalog server.Catalog
	keys    Checker
	logins  logins
	pages   *template.Template
}

// New makes a viewer of what is in catalog.
func New(catalog server.Catalog, keys Checker) (*Viewer, error) {
	pages, err := template.New("").Funcs(functions()).ParseFS(assets, "assets/*.html")
	if err != nil {
		return nil, fmt.Errorf("read templates: %w", err)
	}
	return &Viewer{Log: slog.New(slog.DiscardHandler), catalog: catalog, keys: keys, pages: pages}, nil
}

// Handler serves everything below /.
func (v *Viewer) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /style.css", v.style)
	mux.HandleFunc("GET /{$}", v.guard(v.list))
	mux.HandleFunc("GET /sessions/{id}", v.guard(v.show))
	if !v.Open {
		mux.HandleFunc("GET /login", v.loginForm)
		mux.HandleFunc("POST /login", v.login)
		mux.HandleFunc("POST /logout", v.logout)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		v.fail(w, http.StatusNotFound, "There is no such page.")
	})
	return v.harden(http.NewCrossOriginProtection().Handler(mux))
}

// harden sets what keeps a browser from doing more than show the page, and refuses foreign host names when there is
// no login.
func (v *Viewer) harden(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy",
			"default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if v.Open && !IsLoopback(r.Host) {
			v.fail(w, http.StatusForbidden, "This viewer answers only to 127.0.0.1, [::1] and localhost.")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// IsLoopback says whether a host, with or without port, is this machine's own by name or address.
func IsLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func (v *Viewer) style(w http.ResponseWriter, _ *http.Request) {
	css, err := assets.ReadFile("assets/style.css")
	if err != nil {
		v.broken(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("Cache-Control", "max-age=300")
	_, _ = w.Write(css) // a browser that has gone is told nothing
}

// render writes a page, whole or not at all.
func (v *Viewer) render(w http.ResponseWriter, status int, name string, data any) {
	var b bytes.Buffer
	if err := v.pages.ExecuteTemplate(&b, name, data); err != nil {
		v.Log.Error("render page", "page", name, "error", err)
		http.Error(w, "This page is broken; the server's log says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a browser that has gone is told nothing
}

func (v *Viewer) fail(w http.ResponseWriter, status int, message string) {
	v.render(w, status, "error.html", message)
}

// broken answers errors that are nobody's on the other side.
func (v *Viewer) broken(w http.ResponseWriter, err error) {
	if errors.Is(err, server.ErrNotFound) {
		v.fail(w, http.StatusNotFound, "There is no such session.")
		return
	}
	v.Log.Error("read for page", "error", err)
	v.fail(w, http.StatusInternalServerError, "The server could not read this; its log says why.")
}
