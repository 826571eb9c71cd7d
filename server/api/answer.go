package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/wire"
)

// writePatience is how long a client may take to read one piece of an answer.
const writePatience = 30 * time.Second

type errorAnswer struct {
	Error struct {
		Code    string          `json:"code"`
		Message string          `json:"message"`
		Stream  *streamConflict `json:"stream,omitempty"`
		Choices []choiceAnswer  `json:"choices,omitempty"`
	} `json:"error"`
}

// refuse answers err. An error that does not refuse the request is the server's fault: the client retries later, and
// the details stay in the log.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var a errorAnswer
	var status int
	if no, ok := errors.AsType[*wire.RefusalError](err); ok {
		status, a.Error.Code, a.Error.Message = no.Status, no.Code, no.Message
	} else if conflictOf(w, err, &a) || s.ambiguous(r, err, &a) {
		status = http.StatusConflict
	} else {
		status, a.Error.Code, a.Error.Message = s.explain(r, err)
	}
	var later interface { // an error that knows when to try again
		error
		Seconds() int
	}
	if errors.As(err, &later) {
		w.Header().Set("Retry-After", strconv.Itoa(later.Seconds()))
	} else if a.Error.Code == codeUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(server.UnavailableAfter))
	} else if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	s.answer(w, status, a)
}

// each answers every element of a list: [] for an empty one, never null.
func each[T, A any](list []T, answer func(T) A) []A {
	out := make([]A, 0, len(list))
	for _, x := range list {
		out = append(out, answer(x))
	}
	return out
}

// choiceAnswer is one user's session among several with one id.
type choiceAnswer struct {
	server.Address
	User string `json:"user"`
}

// orNull is null in an answer for the zero value.
func orNull[T comparable](x T) *T {
	if x == *new(T) {
		return nil
	}
	return &x
}

// orEmpty is [] in an answer for no list, never null.
func orEmpty[T any](list []T) []T { return append([]T{}, list...) }

// ambiguous fills in between which sessions a client has to choose.
func (s *Server) ambiguous(r *http.Request, err error, a *errorAnswer) bool {
	no, ok := errors.AsType[*server.AmbiguousError](err)
	if !ok {
		return false
	}
	a.Error.Code, a.Error.Message = codeAmbiguous, no.Error()+", for example with ?user=NAME"
	names, err := ownersOf(r, s.store.users, no.Choices, func(x *server.Address) int64 { return x.Owner })
	if err != nil {
		s.logOf(r).Error("names of users cannot be read", "error", err)
	}
	for _, x := range no.Choices {
		a.Error.Choices = append(a.Error.Choices, choiceAnswer{x, names[x.Owner]})
	}
	return true
}

const (
	// codeAmbiguous is the code of an error whose choices say what a request could mean.
	codeAmbiguous = "ambiguous"
	// codeUnavailable is that of a database that can't be reached now.
	codeUnavailable = "unavailable"
)

// explain finds the status of errors that come from below.
func (s *Server) explain(r *http.Request, err error) (status int, code, message string) {
	if no, ok := errors.AsType[*server.AmbiguousError](err); ok {
		return http.StatusConflict, codeAmbiguous, no.Error()
	}
	switch {
	case errors.Is(err, auth.ErrUnauthorized):
		return http.StatusUnauthorized, "unauthorized", "missing or wrong X-API-Key"
	case errors.Is(err, auth.ErrTooMany):
		return http.StatusTooManyRequests, "too_many", err.Error()
	case errors.Is(err, server.ErrNoContent):
		return http.StatusNotFound, "no_content", err.Error()
	case errors.Is(err, server.ErrRetired):
		return http.StatusGone, "retired", "it was retired by policy: its bytes are not stored any more"
	case errors.Is(err, server.ErrNotFound):
		return http.StatusNotFound, "not_found", err.Error()
	case errors.Is(err, auth.ErrLastOwner):
		return http.StatusConflict, "last_owner", err.Error()
	case errors.Is(err, server.ErrExists):
		return http.StatusConflict, "exists", err.Error()
	case errors.Is(err, server.ErrHasMany):
		return http.StatusConflict, "too_many", err.Error()
	case errors.Is(err, server.ErrOverQuota):
		no, _ := errors.AsType[*server.QuotaError](err)
		return http.StatusInsufficientStorage, protocol.CodeOverQuota, no.Error()
	case errors.Is(err, server.ErrBusy):
		return http.StatusServiceUnavailable, "busy", server.ErrBusy.Error()
	case errors.Is(err, server.ErrCold):
		s.logOf(r).Warn("cold storage was needed", "error", err)
		return http.StatusServiceUnavailable, "cold", server.ErrCold.Error()
	case errors.Is(err, server.ErrBadPage):
		return http.StatusBadRequest, "bad_page", "after is not the next of an earlier page"
	case r.Context().Err() != nil && errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable, "cancelled", "the request was given up or the server is stopping"
	case server.DiskFull(err):
		s.logOf(r).Error("the database's disk is full", "error", err)
		return http.StatusServiceUnavailable, codeUnavailable,
			"the disk of the server's database is full: its operator has to free space; what is not stored is sent again"
	case server.Unavailable(err):
		s.logOf(r).Warn("the database could not be asked", "error", err)
		return http.StatusServiceUnavailable, codeUnavailable,
			"the database can't be reached now, or has too much to do; try again later"
	}
	s.logOf(r).Error("request failed", "error", err)
	return http.StatusInternalServerError, "internal", "the server could not do this now; its log says why"
}

// answer writes v as JSON.
func (s *Server) answer(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		s.Log.Error("encode answer", "error", err)
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = s.write(w, append(b, '\n')) // the client may be gone
}

// recheck is how long a body is read by what was known of its key when it began.
const recheck = time.Second

// keyedBody is a request's body that ends once the key that it came with is no longer valid: a slow one may outlive it.
type keyedBody struct {
	io.ReadCloser
	valid func() error
	every time.Duration
	at    time.Time // when the key was valid
}

// Read returns the next piece, unless the key was revoked before it came.
func (b *keyedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if time.Since(b.at) < b.every {
		return n, err
	}
	if err := b.valid(); err != nil {
		return 0, err
	}
	b.at = time.Now()
	return n, err
}

// maxDocument limits a request that carries no lines, in bytes.
const maxDocument = 1 << 20

// readBody reads a small request document of at most limit bytes. It refuses unknown members: they may matter.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, limit int64, to any) error {
	body, err := s.bodies.Read(w, r, limit)
	if err != nil {
		return err
	}
	defer body.Release()
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return wire.BadRequest("bad_json", fmt.Sprintf("the body is not what this call takes: %v", err))
	}
	return nil
}
