// Package page is what all pages of the viewer share: the layout, templates, assets, error pages, and answers to
// invalid requests. It does not know what a page shows or how its reader logged in.
package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
)

// Site renders pages. Set the exported fields before serving.
type Site struct {
	// Base is the path below which the pages lie, without a slash at its end: "" or "/ccship". Handlers expect paths
	// without it.
	Base string
	// Follow offers to follow new lines.
	Follow bool
	Log    *slog.Logger
	// Users names whose sessions a page offers.
	Users Users

	access    *auth.Access
	templates *template.Template
	files     map[string]file
}

// New reads the templates, *.html, and the assets of the folder assets. Templates may call functions, and "url" and
// "asset" for addresses.
func New(assets fs.FS, access *auth.Access, functions template.FuncMap) (*Site, error) {
	s := &Site{Log: slog.New(slog.DiscardHandler), access: access}
	var err error
	if s.files, err = readFiles(assets); err != nil {
		return nil, err
	}
	s.templates, err = template.New("").Funcs(functions).Funcs(template.FuncMap{
		"url":   func(path string) string { return s.Base + path },
		"asset": s.assetURL,
	}).ParseFS(assets, "assets/*.html")
	if err != nil {
		return nil, fmt.Errorf("read templates: %w", err)
	}
	return s, nil
}

// Handler answers a request of a reader who may see pages. Site.Answer answers the error it returns.
type Handler func(w http.ResponseWriter, r *http.Request, who server.Login) error

// BadRequestError is an error for the reader: what is wrong with the request.
type BadRequestError string

func (e BadRequestError) Error() string { return string(e) }

// Answer shows the page of an error.
func (s *Site) Answer(w http.ResponseWriter, r *http.Request, err error) {
	var bad BadRequestError
	var several *server.AmbiguousError
	switch {
	case errors.As(err, &several):
		s.choose(w, r, several)
	case errors.Is(err, server.ErrNotFound):
		s.Missing(w, r, "No such session, or you may not see it.")
	case errors.Is(err, server.ErrBusy):
		s.Fail(w, r, http.StatusServiceUnavailable, "The server is busy. Try again in a moment, or search for less.")
	case errors.Is(err, server.ErrHasMany):
		s.Fail(w, r, http.StatusBadRequest, "There are as many as one user may have. End some that are not needed first.")
	case errors.Is(err, server.ErrCold):
		s.Log.Warn("cold storage was needed", "path", auth.LoggedPath(r.URL.Path), "error", err)
		s.Fail(w, r, http.StatusServiceUnavailable, "This is in cold storage, which can't be reached now. Try again later.")
	case errors.Is(err, server.ErrTooManyListeners):
		s.Fail(w, r, http.StatusServiceUnavailable, "Too many pages are following live. Close some and reload.")
	case errors.As(err, &bad):
		s.Fail(w, r, http.StatusBadRequest, bad.Error())
	case r.Context().Err() != nil:
		return // the browser is gone
	case server.DiskFull(err):
		s.Log.Error("the database's disk is full", "path", auth.LoggedPath(r.URL.Path), "error", err)
		s.Fail(w, r, http.StatusServiceUnavailable, "The disk of the database is full. Its operator has to free space.")
	case server.Unavailable(err):
		s.Log.Warn("the database could not be asked", "path", auth.LoggedPath(r.URL.Path), "error", err)
		w.Header().Set("Retry-After", strconv.Itoa(server.UnavailableAfter))
		s.Fail(w, r, http.StatusServiceUnavailable,
			"The database can't be reached now, or has too much to do. Reload in a moment.")
	default:
		s.Log.Error("read for page", "path", auth.LoggedPath(r.URL.Path), "error", err)
		s.Fail(w, r, http.StatusInternalServerError, "The server could not load this page; see its log.")
	}
}

// Execute writes what the template name makes of data. After an error a part of it may have been written.
func (s *Site) Execute(w io.Writer, name string, data any) error {
	return s.templates.ExecuteTemplate(w, name, data)
}

// Render writes the page that the template name makes of data, whole or not at all.
func (s *Site) Render(w http.ResponseWriter, status int, name string, data any) {
	var b bytes.Buffer
	if err := s.Execute(&b, name, data); err != nil {
		s.Log.Error("render page", "page", name, "error", err)
		http.Error(w, "The server could not render this page; see its log.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	Whole(w, status, b.Bytes())
}

type failure struct {
	Layout
	Message string
	Missing bool
}

// Fail shows a page that says only message.
func (s *Site) Fail(w http.ResponseWriter, r *http.Request, status int, message string) {
	s.Render(w, status, "error.html", failure{s.Layout(r, reader(r), "Sorry", ""), message, false})
}

// Missing shows that there is nothing at an address, and where to look.
func (s *Site) Missing(w http.ResponseWriter, r *http.Request, message string) {
	s.Render(w, http.StatusNotFound, "error.html", failure{s.Layout(r, reader(r), "Not found", ""), message, true})
}

// readerKey is the key of a request's reader.
type readerKey struct{}

// Of returns a request that is known to be a reader's: the page of an error offers what other pages do.
func Of(r *http.Request, who server.Login) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), readerKey{}, who))
}

// reader is who a request is known to be from.
func reader(r *http.Request) server.Login {
	who, _ := r.Context().Value(readerKey{}).(server.Login)
	return who
}

// file is an asset that browsers fetch.
type file struct {
	body    []byte
	kind    string
	version string // hash of its content, part of its address
}

// readFiles reads the style sheet, the script and the icon.
func readFiles(assets fs.FS) (map[string]file, error) {
	kinds := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
		".svg": "image/svg+xml"}
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
		b, err := fs.ReadFile(assets, "assets/"+e.Name())
		if err != nil {
			return nil, fmt.Errorf("read asset: %w", err)
		}
		sum := sha256.Sum256(b)
		out[e.Name()] = file{b, kind, base64.RawURLEncoding.EncodeToString(sum[:9])}
	}
	return out, nil
}

// Asset is GET /assets/{name}.
func (s *Site) Asset(w http.ResponseWriter, r *http.Request) {
	f, ok := s.files[r.PathValue("name")]
	if !ok {
		s.Fail(w, r, http.StatusNotFound, "No such file.")
		return
	}
	w.Header().Set("Content-Type", f.kind)
	if r.URL.Query().Get("v") == f.version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(f.body) // the browser may be gone
}

// Style returns the style sheet. The caller does not change it.
func (s *Site) Style() []byte { return s.files["style.css"].body }

// assetURL returns an asset's address, which changes with its content.
func (s *Site) assetURL(name string) string {
	return s.Base + "/assets/" + name + "?v=" + url.QueryEscape(s.files[name].version)
}

// policy restricts a page to its own files.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// Harden sets headers that keep a browser from doing more than showing the page.
func (s *Site) Harden(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		h.Set("Cache-Control", "private, no-store")
		next.ServeHTTP(Patient{w}, r)
	})
}

const (
	// piece is how much is written at once, and pieceTime how long a reader may take for it.
	piece     = 256 << 10
	pieceTime = 30 * time.Second
)

// Patient gives the reader of an answer time for each piece of it, not for the whole: one that stops reading loses the
// connection.
type Patient struct{ http.ResponseWriter }

// Unwrap is for http.ResponseController.
func (p Patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p Patient) Write(b []byte) (n int, err error) {
	c := http.NewResponseController(p.ResponseWriter)
	for err == nil && len(b) > 0 {
		_ = c.SetWriteDeadline(time.Now().Add(pieceTime)) // not every writer has deadlines (tests)
		var m int
		m, err = p.ResponseWriter.Write(b[:min(len(b), piece)])
		n, b = n+m, b[m:]
	}
	return n, err
}

// IsLoopback reports whether a host, with or without port, is a loopback name or address.
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

// Counted is a writer that counts the bytes of answers which are in memory as a whole until their reader has taken
// them.
type Counted struct {
	http.ResponseWriter
	// Hold counts so many bytes until release is called; its error says that there is no space for them.
	Hold func(bytes int64) (release func(), err error)
}

// Unwrap is for http.ResponseController.
func (c Counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// small is the longest answer that is not counted, in bytes: about what the connection takes at once.
const small = 64 << 10

// Whole writes an answer that is in memory. One for which a Counted has no space is refused at once: one that waited
// would be in memory, too.
func Whole(w http.ResponseWriter, status int, body []byte) {
	if c, ok := w.(Counted); ok && len(body) > small {
		release, err := c.Hold(int64(len(body)))
		if err != nil {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "The server holds as much as it may for readers who have not taken it yet. Reload in a moment.",
				http.StatusServiceUnavailable)
			return
		}
		defer release()
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the browser may be gone
}

// WriteImage answers with an image. Its own policy makes it harmless even when it is opened alone.
func WriteImage(w http.ResponseWriter, kind string, image []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "private, no-store")
	h.Set("Content-Length", strconv.Itoa(len(image)))
	Whole(w, http.StatusOK, image)
}
