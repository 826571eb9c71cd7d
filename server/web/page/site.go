package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"strconv"

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
