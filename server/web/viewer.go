package web

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/derive"
)

//go:embed assets
var assets embed.FS

// Store is what pages read, and what the account page changes.
type Store interface {
	server.Library
	server.Accounts
}

// Viewer serves the pages. Set the exported fields before Handler.
type Viewer struct {
	// Open shows everything without a login. Only for a server that listens on loopback: it then answers only to
	// loopback host names, so that no web page can have its own name point here (DNS rebinding).
	Open bool
	// Base is the path the pages lie below, without a slash at its end: "" or "/ccship". Handler expects paths without
	// it; whoever mounts the viewer strips it.
	Base string
	// Hub tells of new lines; nil: pages do not follow.
	Hub Hub
	// Prices is what tokens cost; nil: the list that comes with the program.
	Prices *derive.Prices
	Log    *slog.Logger

	store  Store
	access *auth.Access
	pages  *template.Template
	files  map[string]file
	now    func() time.Time

	series seriesCache
}

// New makes a viewer of what is in store for whoever access lets in.
func New(store Store, access *auth.Access) (*Viewer, error) {
	v := &Viewer{Log: slog.New(slog.DiscardHandler), store: store, access: access, now: time.Now}
	var err error
	if v.files, err = readFiles(); err != nil {
		return nil, err
	}
	v.pages, err = template.New("").Funcs(v.functions()).ParseFS(assets, "assets/*.html")
	if err != nil {
		return nil, fmt.Errorf("read templates: %w", err)
	}
	return v, nil
}

// Handler serves everything below /. To be called once.
func (v *Viewer) Handler() http.Handler {
	if v.Prices == nil {
		v.Prices = derive.DefaultPrices()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /assets/{name}", v.asset)
	mux.HandleFunc("POST /theme", v.setTheme)
	for pattern, page := range map[string]page{
		"GET /{$}":                            v.list,
		"GET /sessions/{id}":                  v.conversation,
		"GET /sessions/{id}/L/{line}":         v.permalink,
		"GET /sessions/{id}/tail":             v.tail,
		"GET /sessions/{id}/prompts":          v.prompts,
		"GET /sessions/{id}/entry/{line}":     v.entry,
		"GET /sessions/{id}/bytes/{line}":     v.bytes,
		"GET /sessions/{id}/image/{line}/{n}": v.image,
		"GET /sessions/{id}/compare":          v.compare,
		"GET /sessions/{id}/export":           v.download,
		"GET /sessions/{id}/context":          v.gauge,
		"GET /sessions/{id}/papers":           v.artifactsPiece,
		"POST /sessions/{id}/documents":       v.requestLink,
		"GET /sessions/{id}/document":         v.document,
		"GET /sessions/{id}/document/bytes":   v.documentBytes,
		"GET /sessions/{id}/document/image":   v.documentImage,
		"GET /sessions/{id}/document/compare": v.compareVersions,
		"GET /sessions/{id}/file":             v.file,
		"GET /search":                         v.search,
		"GET /usage":                          v.usage,
		"GET /drops":                          v.drops,
		"GET /events":                         v.events,
	} {
		mux.HandleFunc(pattern, v.guard(page))
	}
	if !v.Open {
		v.routeAccounts(mux)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		v.fail(w, r, http.StatusNotFound, "No such page.")
	})
	return v.harden(http.NewCrossOriginProtection().Handler(mux))
}

// policy lets a page use its own files and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// harden sets what keeps a browser from doing more than show the page, and refuses foreign host names when there is
// no login.
func (v *Viewer) harden(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		h.Set("Cache-Control", "no-store")
		if v.Open && !IsLoopback(r.Host) {
			v.fail(w, r, http.StatusForbidden, "This viewer only accepts the host names 127.0.0.1, [::1] and localhost.")
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

// page is a handler that knows who is reading. An error it returns is answered.
type page func(w http.ResponseWriter, r *http.Request, who server.Login) error

// errUsage is what is wrong with a request, for the reader.
type errUsage string

func (e errUsage) Error() string { return string(e) }

// answer says what became of a page that could not be shown.
func (v *Viewer) answer(w http.ResponseWriter, r *http.Request, err error) {
	var usage errUsage
	switch {
	case errors.Is(err, server.ErrNotFound):
		v.fail(w, r, http.StatusNotFound, "No such session, or you may not see it.")
	case errors.Is(err, server.ErrTooManyListeners):
		v.fail(w, r, http.StatusServiceUnavailable, "Too many pages are following live. Close some and reload.")
	case errors.As(err, &usage):
		v.fail(w, r, http.StatusBadRequest, usage.Error())
	case r.Context().Err() != nil:
		return // nobody is there to read it
	default:
		v.Log.Error("read for page", "path", r.URL.Path, "error", err)
		v.fail(w, r, http.StatusInternalServerError, "The server could not load this page; see its log.")
	}
}

// render writes a page, whole or not at all.
func (v *Viewer) render(w http.ResponseWriter, status int, name string, data any) {
	var b bytes.Buffer
	if err := v.pages.ExecuteTemplate(&b, name, data); err != nil {
		v.Log.Error("render page", "page", name, "error", err)
		http.Error(w, "The server could not render this page; see its log.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a browser that has gone is told nothing
}

type failure struct {
	layout
	Message string
}

func (v *Viewer) fail(w http.ResponseWriter, r *http.Request, status int, message string) {
	v.render(w, status, "error.html", failure{v.layout(r, server.Login{}, "Sorry", ""), message})
}
