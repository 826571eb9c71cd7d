package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// The largest page of a list, and the page size when a request names none.
const (
	maxPage     = 1000
	defaultPage = 100
)

// get makes a handler that answers what f returns.
func get[A any](s *Endpoint, f func(context.Context) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, err := f(r.Context())
		if err != nil {
			s.fail(w, asError(err))
			return
		}
		s.answer(w, http.StatusOK, answer)
	}
}

// asked makes a handler that answers what f returns for what read finds in a request.
func asked[Q, A any](s *Endpoint, read func(*http.Request) (Q, *Error),
	f func(context.Context, Q) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, err := read(r)
		if err != nil {
			s.fail(w, err)
			return
		}
		get(s, func(ctx context.Context) (A, error) { return f(ctx, q) })(w, r)
	}
}

// post makes a handler that answers what f returns for the request's body.
func post[Q, A any](s *Endpoint, f func(context.Context, Q) (A, error)) http.HandlerFunc {
	return asked(s, body[Q], f)
}

// body decodes a request's body, which may be empty and is limited. Unknown members are the caller's error.
func body[Q any](r *http.Request) (q Q, err *Error) {
	in := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxBody))
	in.DisallowUnknownFields()
	if err := in.Decode(&q); err != nil && !errors.Is(err, io.EOF) {
		return q, Usage(fmt.Sprintf("read request: %v", err), "client and daemon may be of different versions")
	}
	return q, nil
}

// page reads offset and limit of a query.
func page(r *http.Request) (Page, *Error) {
	p := Page{Limit: defaultPage}
	for name, field := range map[string]*int{"offset": &p.Offset, "limit": &p.Limit} {
		text := r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return p, Usage(fmt.Sprintf("bad %s %q", name, text), "it is a whole number from 0 up")
		}
		*field = n
	}
	if p.Limit == 0 {
		p.Limit = defaultPage
	}
	p.Limit = min(p.Limit, maxPage)
	return p, nil
}

func (s *Endpoint) status(w http.ResponseWriter, r *http.Request) {
	switch how := r.URL.Query().Get("probe"); how {
	case "":
	case ProbeWait, ProbeBehind:
		s.daemon.Probe(r.Context(), how == ProbeWait)
	default:
		s.fail(w, Usage(fmt.Sprintf("bad probe %q", how), "it is wait or behind"))
		return
	}
	s.answer(w, http.StatusOK, s.daemon.Status(r.Context()))
}

// value reads a member of the query that may be missing.
func value(name string) func(*http.Request) (string, *Error) {
	return func(r *http.Request) (string, *Error) { return r.URL.Query().Get(name), nil }
}

// needed reads a member of the query that must be there.
func needed(name string) func(*http.Request) (string, *Error) {
	return func(r *http.Request) (string, *Error) {
		text := r.URL.Query().Get(name)
		if text == "" {
			return "", Usage("no "+name+" is named", "name one with ?"+name+"=")
		}
		return text, nil
	}
}

func sessionsQuery(r *http.Request) (SessionsQuery, *Error) {
	p, err := page(r)
	return SessionsQuery{Project: r.URL.Query().Get("project"), Page: p}, err
}

func checkpointsQuery(r *http.Request) (CheckpointsQuery, *Error) {
	p, err := page(r)
	return CheckpointsQuery{Session: r.URL.Query().Get("session"), Page: p}, err
}

func messagesQuery(r *http.Request) (q MessagesQuery, err *Error) {
	if q.Page, err = page(r); err != nil {
		return q, err
	}
	if limit := r.URL.Query().Get("limit"); limit == "" || limit == "0" {
		q.Limit = 0 // all: there are never many
	}
	q.Session, err = needed("session")(r)
	return q, err
}

func initQuery(r *http.Request) (q InitQuery, err *Error) {
	values := r.URL.Query()
	q = InitQuery{Cwd: values.Get("cwd"), Confirm: values.Get("confirm") == "true", Title: values.Get("title"),
		Source: values.Get("source")}
	q.Session, err = needed("session")(r)
	return q, err
}

// fail answers with an error.
func (s *Endpoint) fail(w http.ResponseWriter, e *Error) { s.answer(w, statusOf(e.Code), e) }

// statusOf returns the HTTP status of an error code.
func statusOf(code string) int {
	switch code {
	case CodeUsage, CodeConfig, CodeDocument, CodeAmbiguous:
		return http.StatusBadRequest
	case CodeForbidden:
		return http.StatusForbidden
	case CodeNotFound, CodeNoDeadLetter, CodeNoPattern, CodeNoSession, CodeNoCheckpoint:
		return http.StatusNotFound
	case CodeMethod:
		return http.StatusMethodNotAllowed
	}
	return http.StatusInternalServerError
}
