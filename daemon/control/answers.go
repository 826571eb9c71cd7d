package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
)

// The largest page of a list, and the page size when a request names none.
const (
	maxPage     = 1000
	defaultPage = 100
)

// get makes a call without a body; it answers what f returns.
func get[A any](s *Endpoint, f func(context.Context) (A, error)) call {
	return answers[A](func(w http.ResponseWriter, r *http.Request) { give(s, w, r, f) })
}

// post makes a call that answers what f returns for the request's body.
func post[Q, A any](s *Endpoint, f func(context.Context, Q) (A, error)) call {
	handle := func(w http.ResponseWriter, r *http.Request) {
		var req Q
		if err := readBody(w, r, &req); err != nil {
			s.fail(w, err)
			return
		}
		give(s, w, r, func(ctx context.Context) (A, error) { return f(ctx, req) })
	}
	return call{handle, reflect.TypeFor[Q](), reflect.TypeFor[A]()}
}

func give[A any](s *Endpoint, w http.ResponseWriter, r *http.Request, f func(context.Context) (A, error)) {
	answer, err := f(r.Context())
	if err != nil {
		s.fail(w, asError(err))
		return
	}
	s.answer(w, http.StatusOK, answer)
}

// readBody decodes a request whose body may be empty. Unknown members are the caller's error.
func readBody(w http.ResponseWriter, r *http.Request, into any) *Error {
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	body.DisallowUnknownFields()
	if err := body.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return Usage(fmt.Sprintf("read request: %v", err), "GET /v1/openapi describes every request")
	}
	return nil
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

func (s *Endpoint) sessions(w http.ResponseWriter, r *http.Request) {
	p, err := page(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	q := SessionsQuery{Project: r.URL.Query().Get("project"), Page: p}
	give(s, w, r, func(ctx context.Context) (Sessions, error) { return s.daemon.Sessions(ctx, q) })
}

func (s *Endpoint) outbox(w http.ResponseWriter, r *http.Request) {
	p, err := page(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	give(s, w, r, func(ctx context.Context) (OutboxList, error) { return s.daemon.Outbox(ctx, p) })
}

func (s *Endpoint) include(w http.ResponseWriter, r *http.Request) {
	pattern := r.URL.Query().Get("pattern")
	give(s, w, r, func(ctx context.Context) (Excludes, error) { return s.daemon.Include(ctx, pattern) })
}

// fail answers with an error.
func (s *Endpoint) fail(w http.ResponseWriter, e *Error) { s.answer(w, statusOf(e.Code), e) }

// statusOf is the HTTP status of an error code.
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
	case CodeTooMany:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
