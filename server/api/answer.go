package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

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
	} `json:"error"`
}

// refuse answers err. An error that does not refuse the request is the server's fault: the client tries again later,
// the text stays in the log.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var a errorAnswer
	var status int
	if no, ok := errors.AsType[*wire.RefusalError](err); ok {
		status, a.Error.Code, a.Error.Message = no.Status, no.Code, no.Message
	} else if conflictOf(w, err, &a) {
		status = http.StatusConflict
	} else {
		status, a.Error.Code, a.Error.Message = s.explain(r, err)
	}
	if many, ok := errors.AsType[*auth.TooManyError](err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(many.Seconds()))
	} else if status == http.StatusServiceUnavailable {
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

// explain finds the status of errors that come from below.
func (s *Server) explain(r *http.Request, err error) (status int, code, message string) {
	switch {
	case errors.Is(err, auth.ErrUnauthorized):
		return http.StatusUnauthorized, "unauthorized", "missing or wrong X-API-Key"
	case errors.Is(err, auth.ErrTooMany):
		return http.StatusTooManyRequests, "too_many", err.Error()
	case errors.Is(err, server.ErrNoContent):
		return http.StatusNotFound, "no_content", err.Error()
	case errors.Is(err, server.ErrNotFound):
		return http.StatusNotFound, "not_found", err.Error()
	case errors.Is(err, auth.ErrLastOwner):
		return http.StatusConflict, "last_owner", err.Error()
	case errors.Is(err, server.ErrExists):
		return http.StatusConflict, "exists", err.Error()
	case errors.Is(err, server.ErrBadPage):
		return http.StatusBadRequest, "bad_page", "after is not the next of an earlier page"
	case r.Context().Err() != nil && errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable, "cancelled", "the request was given up or the server is stopping"
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
