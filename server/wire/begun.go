package wire

import (
	"maps"
	"net/http"
)

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
