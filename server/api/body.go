package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ccship/ccship/server/wire"
)

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

// readBody reads a small request document of at most limit bytes. It refuses unknown members: they may matter.
func readBody(w http.ResponseWriter, r *http.Request, limit int64, to any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	if _, ok := errors.AsType[*wire.RefusalError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return wire.Refuse(http.StatusRequestEntityTooLarge, "too_large",
			fmt.Sprintf("the request is larger than %d bytes", limit))
	}
	if err != nil {
		return wire.BadRequest("bad_json", fmt.Sprintf("the body is not what this call takes: %v", err))
	}
	return nil
}
