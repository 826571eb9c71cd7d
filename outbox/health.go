package outbox

import "time"

// States of a destination.
const (
	StateOK       = "ok"
	StateUnknown  = "unknown" // nothing was sent since start
	StateRetrying = "retrying"
	StateRefused  = "refused" // the server refuses until someone acts; it is probed every minute
)

// Health is how delivery to a destination goes. A copy: it does not change.
type Health struct {
	State      string
	Kind       string // of the trouble, see Kind…; "" when there is none
	Detail     string // one line
	Hint       string // what to do about it, may be ""
	RetryAt    time.Time
	LastOKAt   time.Time // when entries were last acknowledged
	Protocol   string    // "ccship", "plain" or "unknown"
	MaxRequest int64     // uncompressed bytes, learned from 413; 0: none
	Accepts    Kinds     // kinds beside lines that the server takes

	// Since start, counted when they left the queue.
	Entries  int64 // acknowledged
	Bytes    int64 // theirs, uncompressed
	Requests int64 // that were acknowledged
	Withheld int64 // entries
	Dead     int64 // entries and items
	Items    int64 // checkpoints, document events and blobs that were acknowledged
	Unwanted int64 // those that were withheld
	Gone     int64 // blobs whose file changed or went away before it was sent
}

// Health says how delivery goes. Safe for concurrent use.
func (d *Drainer) Health() Health {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.health
}

// publish shows the loop's state to Health, and logs when it became another.
func (l *loop) publish() {
	h := &l.health
	h.Protocol, h.MaxRequest = l.known.protocol(), l.known.MaxRaw
	h.Accepts = l.known.Accepts
	was, wasKind := h.State, h.Kind
	h.Kind, h.Detail, h.Hint, h.RetryAt = "", "", "", time.Time{}
	switch t := &l.gate.trouble; {
	case l.gate.closed:
		h.State = StateRetrying
		if t.verdict == refuse {
			h.State = StateRefused
		}
		h.Kind, h.Detail, h.Hint, h.RetryAt = t.kind, t.detail(), t.hint, l.gate.next()
		if h.State != was || h.Kind != wasKind {
			l.d.Log.Warn("delivery "+h.State, "server", l.server, "kind", h.Kind, "err", t.summary, "hint", h.Hint)
		}
	case l.successes > 0:
		h.State = StateOK
	default:
		h.State = StateUnknown
	}
	l.d.mu.Lock()
	l.d.health = *h
	l.d.mu.Unlock()
}
