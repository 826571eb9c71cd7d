package outbox

import (
	"context"
	"net/http"
	"time"
)

// maxGreetings is how often in a row a server is only greeted. Something in between may answer greetings with 5xx for
// ever, and let rows pass.
const maxGreetings = 3

// greets reports whether to ask the server for a sign of life before rows go to it. A server that is away is asked
// every few seconds, and one that comes back by everybody at once: a few bytes each, not a batch.
func (l *loop) greets() bool {
	f := &l.failure
	away := f.verdict == retryLater && (f.kind == KindUnreachable || f.kind == KindServerError)
	return l.gate.Closed() && away && l.greeted < maxGreetings
}

// greet returns why rows need not be sent now; nil: a server answers. An answer of 5xx counts only if the server is
// known to answer greetings.
func (s *sender) greet(ctx context.Context, speaks bool) *reply {
	r := s.probe(ctx)
	if r.verdict == acknowledged {
		if r.status < http.StatusInternalServerError || !speaks {
			return nil
		}
		r.verdict, r.kind, r.summary = retryLater, KindServerError, "answered "+statusText(r.status)
	}
	return &r
}

// notGreeted handles a greeting without a good answer: nothing of the lane was sent.
func (l *loop) notGreeted(now time.Time, r result) {
	l.greeted++
	if r.transfer != nil {
		r.lane.transfer = r.transfer
		l.resumable = append(l.resumable, r.lane)
	}
	l.failedLast = r.lane
	l.closeGate(now, &r, false)
}
