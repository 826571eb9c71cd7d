package outbox

import "time"

// States of a destination.
const (
	StateOK       = "ok"
	StateUnknown  = "unknown" // nothing sent since the start
	StateRetrying = "retrying"
	StateRefused  = "refused" // the server refuses until a person acts; one request is tried each minute
)

// Health is the state of delivery to a destination. It is a copy.
type Health struct {
	State      string
	Kind       string // of the failure, see Kind…; "": none
	Detail     string // one line
	Hint       string // what to do next, may be ""
	RetryAt    time.Time
	LastOKAt   time.Time // when entries were last acknowledged
	Protocol   string    // "ccship", "plain" or "unknown"
	MaxRequest int64     // uncompressed bytes, learned from 413; 0: none
	Accepts    Kinds     // artifact kinds that the server accepts

	// Since the start, counted when they left the queue.
	Entries  int64 // acknowledged
	Bytes    int64 // theirs, uncompressed
	Requests int64 // that were acknowledged
	Withheld int64 // entries
	Dead     int64 // entries and items
	Items    int64 // checkpoints, document events and blobs that were acknowledged
	Unwanted int64 // items that were withheld
	Gone     int64 // blobs whose file changed or was removed before it was sent
}

// Health returns the state of delivery. Safe for concurrent use.
func (d *Drainer) Health() Health {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.health
}

// publish copies the loop's state to Health and logs when it changes.
func (l *loop) publish() {
	h := &l.health
	h.Protocol, h.MaxRequest = l.server.protocol(), l.server.MaxRaw
	h.Accepts = l.server.Accepts
	was, wasKind := h.State, h.Kind
	h.Kind, h.Detail, h.Hint, h.RetryAt = "", "", "", time.Time{}
	switch t := &l.failure; {
	case l.gate.Closed():
		h.State = StateRetrying
		if t.verdict == refused {
			h.State = StateRefused
		}
		h.Kind, h.Detail, h.Hint, h.RetryAt = t.kind, t.detail(), t.hint, l.gate.Next()
		if h.State != was || h.Kind != wasKind {
			l.d.Log.Warn("delivery "+h.State, "server", l.name, "kind", h.Kind, "err", t.summary, "hint", h.Hint)
		}
	case l.lanes.overQuota() != nil:
		// Other transcripts go on: a limit of sessions does not concern those that are stored.
		lane := l.lanes.overQuota()
		h.State, h.Kind, h.Detail, h.Hint = StateRefused, KindOverQuota, lane.overQuota.detail(), lane.overQuota.hint
		h.RetryAt = lane.notBefore
		if wasKind != KindOverQuota {
			l.d.Log.Warn("delivery "+h.State, "server", l.name, "kind", h.Kind, "err", lane.overQuota.summary, "hint", h.Hint)
		}
	case l.successes > 0:
		h.State = StateOK
	default:
		h.State = StateUnknown
	}
	l.d.mu.Lock()
	if l.outOfStep && l.d.trouble != "" {
		h.State, h.Detail, h.Hint = StateRefused, l.d.trouble, l.d.troubleHint
	}
	l.d.health = *h
	l.d.mu.Unlock()
}
