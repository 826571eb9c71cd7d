package wire

import "net/http"

// RefusalError is an error together with the response that the client gets for it.
type RefusalError struct {
	Status  int
	Code    string // for programs, such as "bad_request"
	Message string // for people
}

func (r *RefusalError) Error() string { return r.Code + ": " + r.Message }

// Refuse makes a *RefusalError.
func Refuse(status int, code, message string) error { return &RefusalError{status, code, message} }

// BadRequest is a RefusalError for something that is wrong in the request itself, 400.
func BadRequest(code, message string) error { return Refuse(http.StatusBadRequest, code, message) }
