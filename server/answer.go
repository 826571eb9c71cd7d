package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// writePatience is how long a client may take to read one piece of an answer.
const writePatience = 30 * time.Second

// refusal is an error with the answer that it gets.
type refusal struct {
	status  int
	code    string
	message string
}

func (r *refusal) Error() string { return r.code + ": " + r.message }

func badRequest(code, message string) error {
	return &refusal{http.StatusBadRequest, code, message}
}

type errorAnswer struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// refuse answers err. What is no refusal of the request is the server's fault, which the client is to try again
// later; its text stays in the log.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var a errorAnswer
	status := http.StatusInternalServerError
	if no, ok := errors.AsType[*refusal](err); ok {
		status, a.Error.Code, a.Error.Message = no.status, no.code, no.message
	} else {
		status, a.Error.Code, a.Error.Message = s.explain(r, err)
	}
	if many, ok := errors.AsType[*TooMany](err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(many.Seconds()))
	} else if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	s.answer(w, status, a)
}

// explain finds the status of errors that come from below.
func (s *Server) explain(r *http.Request, err error) (status int, code, message string) {
	switch {
	case errors.Is(err, ErrUnauthorized):
		return http.StatusUnauthorized, "unauthorized", "missing or wrong X-API-Key"
	case errors.Is(err, ErrTooMany):
		return http.StatusTooManyRequests, "too_many", err.Error()
	case errors.Is(err, ErrNoContent):
		return http.StatusNotFound, "no_content", err.Error()
	case errors.Is(err, ErrNotFound):
		return http.StatusNotFound, "not_found", err.Error()
	case errors.Is(err, ErrLastOwner):
		return http.StatusConflict, "last_owner", err.Error()
	case errors.Is(err, ErrExists):
		return http.StatusConflict, "exists", err.Error()
	case errors.Is(err, ErrBadPage):
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
	_ = s.write(w, append(b, '\n')) // a client that has gone is told nothing
}
