package limit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ccship/ccship/server/wire"
)

// minRate is how fast a body must come on average, in bytes a second as sent, once a server's Patience is over. A
// client that gives up after 30 s and 1 s a MiB, as ccship does, is never slower.
const minRate = 8 << 10

// source is a body as it comes from the network. It cuts off who sends too much or too slowly, and remembers the
// network's error, which a decoder may dress up.
type source struct {
	r        io.Reader
	max      int64
	control  *http.ResponseController
	began    time.Time
	patience time.Duration
	n        int64
	err      error
}

// newSource reads r's body, of at most max bytes.
func newSource(w http.ResponseWriter, r *http.Request, max int64, patience time.Duration) *source {
	return &source{
		r: http.MaxBytesReader(w, r.Body, max), max: max,
		control: http.NewResponseController(w), began: time.Now(), patience: patience,
	}
}

// Read gives the next piece as long as the whole is fast enough.
func (s *source) Read(p []byte) (int, error) {
	due := s.began.Add(s.patience + time.Duration(s.n)*time.Second/minRate)
	_ = s.control.SetReadDeadline(due) // not every writer has deadlines (tests)
	n, err := s.r.Read(p)
	s.n += int64(n)
	switch {
	case err == io.EOF:
		_ = s.control.SetReadDeadline(time.Time{}) // what follows is ours
	case err != nil:
		s.err = err
	}
	return n, err
}

// blame says whose fault it is that a body could not be read. A body that was cut on its way is not the client's: 408
// has it sent again, where 400 would make a dead letter of it.
func (s *source) blame(err error, encoding string) error {
	if _, ok := errors.AsType[*wire.RefusalError](err); ok || errors.Is(err, context.Canceled) {
		return err
	}
	if _, ok := errors.AsType[*http.MaxBytesError](s.err); ok || errors.Is(err, errTooLarge) {
		return wire.Refuse(http.StatusRequestEntityTooLarge, "too_large",
			fmt.Sprintf("the request is larger than %d bytes, decompressed", s.max))
	}
	if s.err != nil {
		return wire.Refuse(http.StatusRequestTimeout, "incomplete", "the body ended early or came too slowly")
	}
	return wire.BadRequest("bad_encoding", fmt.Sprintf("the body is not %s: %v", encoding, err))
}
