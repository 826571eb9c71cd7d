package wire

import "net/http"

// Refusal is an error together with the response that the client gets for it.
type Refusal struct {
	Status  int
	Code    string // for programs, such as "bad_request"
	Message string // for people
}

func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

// Refuse makes a *Refusal.
func Refuse(status int, code, message string) error { return &Refusal{status, code, message} }

// BadRequest is a Refusal of something that is wrong in the request itself, 400.
func BadRequest(code, message string) error { return Refuse(http.StatusBadRequest, code, message) }
