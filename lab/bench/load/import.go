package load

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/lab/bench/corpus"
)

// atOnce is how many transcripts a daemon sends at once.
const atOnce = 4

// Import sends whole sessions, as daemons that begin do.
type Import struct {
	Source *corpus.Source
	User   func(owner int) *Client
	// Patience is for how long a request that failed is sent again.
	Patience time.Duration

	sent atomic.Int64
}

// Bytes are what was sent and answered so far.
func (i *Import) Bytes() int64 { return i.sent.Load() }

// Run sends the sessions in order, atOnce of them at a time, until all are stored or one cannot be.
func (i *Import) Run(ctx context.Context, all []corpus.Session) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan *corpus.Session)
	var group sync.WaitGroup
	for range atOnce {
		group.Go(func() {
			for s := range work {
				if err := i.session(ctx, s); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
feed:
	for n := range all {
		select {
		case work <- &all[n]:
		case <-ctx.Done():
			break feed
		}
	}
	close(work)
	group.Wait()
	return context.Cause(ctx)
}

func (i *Import) session(ctx context.Context, s *corpus.Session) error {
	user := i.User(s.Owner)
	for _, chunk := range s.Chunks(i.Source) {
		at := span{chunk.Generation, chunk.RewoundTo, chunk.Line, chunk.Offset, nil}
		for rest := chunk.Lines; len(rest) > 0; rest = rest[len(at.lines):] {
			at.line, at.offset = at.line+len(at.lines), at.offset+at.bytes()
			at.lines = front(rest)
			if err := i.put(ctx, user, s, &at); err != nil {
				return err
			}
			i.sent.Add(at.bytes())
		}
	}
	return nil
}

// front is as many lines as one request carries.
func front(lines []string) []string {
	bytes := 0
	for n, line := range lines {
		if bytes += len(line); n > 0 && bytes > mostBytes || n == mostEntries {
			return lines[:n]
		}
	}
	return lines
}

func (i *Import) put(ctx context.Context, user *Client, s *corpus.Session, at *span) error {
	for until := time.Now().Add(i.Patience); ; {
		err := user.put(ctx, s, at)
		if err == nil {
			return nil
		}
		no, refused := errors.AsType[*StatusError](err)
		busy := !refused || no.Code == http.StatusServiceUnavailable || no.Code >= 500
		if !busy || ctx.Err() != nil || time.Now().After(until) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}
