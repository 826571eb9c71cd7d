// Package wire reads the bodies that daemons send: lines, checkpoints, document events and uploads. It checks and
// limits what it returns, and refuses the rest with a status and a code for the client. It does not know HTTP requests
// or the store.
package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
)

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

// few is a JSON array of which one element more than maxItems is read at most: an element takes many times as much
// memory as the shortest has bytes.
type few[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (f *few[T]) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if begin, err := d.Token(); err != nil || begin != json.Delim('[') {
		return fmt.Errorf("%.20q is not an array", raw)
	}
	for *f = (*f)[:0]; d.More() && len(*f) <= maxItems; {
		var x T
		if err := d.Decode(&x); err != nil {
			return err
		}
		*f = append(*f, x)
	}
	return nil
}

// maxParts is how many parts the arrays of a request may have that hold no texts.
const maxParts = 1 << 19

// CheckParts refuses a body whose arrays have so many small parts that reading them would take all memory.
func CheckParts(body []byte) error {
	if bytes.Count(body, []byte(",")) > maxParts {
		return Refuse(http.StatusRequestEntityTooLarge, "too_large",
			fmt.Sprintf("the request has more than %d parts: send it in several", maxParts))
	}
	return nil
}

// Begun knows whether anything of an answer has been sent. Until then an error can still be answered.
type Begun struct {
	http.ResponseWriter
	sent   bool
	before http.Header // the headers before this answer set its own
}

// Begin returns an answer of which nothing is there yet.
func Begin(w http.ResponseWriter) *Begun {
	return &Begun{ResponseWriter: w, before: w.Header().Clone()}
}

// Write sends bytes.
func (b *Begun) Write(p []byte) (int, error) {
	b.sent = true
	return b.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (b *Begun) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// Undo takes an answer's headers back. false: something has been sent, and only closing the connection can report an
// error now.
func (b *Begun) Undo() bool {
	if b.sent {
		return false
	}
	clear(b.Header())
	maps.Copy(b.Header(), b.before)
	return true
}
