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

// minRate is the average rate that a body must reach, in bytes per second as sent, once a server's Patience is over. A
// client that gives up after 30 s plus 1 s per MiB, as ccship does, is never slower.
const minRate = 8 << 10

// source is a body as it comes from the network. It ends bodies that are too large or too slow, and keeps the network's
// error, which a decoder may hide.
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

// Read returns the next piece while the average rate is high enough.
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

// blame decides whose fault a failed read of a body is. A body that was cut on its way is not the client's fault: 408
// makes the client send it again, whereas 400 would make it a dead letter.
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
