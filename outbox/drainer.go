package outbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/protocol"
)

// Destination is a server.
type Destination struct {
	Key string   // names it in the Queue
	URL *url.URL // base of its requests, as NormalizeURL returns it
	// APIKey is asked before each request; an error pauses delivery. An empty key is not sent. A method Advice() string of
	// the error says what to do next.
	APIKey func() (key string, err error)
	Plain  bool // never send the extension
}

// fingerprint changes with everything that can change the server's answer: address, key, protocol.
func (d *Destination) fingerprint() uint64 {
	key, err := d.APIKey()
	return fingerprint(d.URL, key, err, d.Plain)
}

func fingerprint(url *url.URL, key string, err error, plain bool) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%v\n%v", url, key, err, plain))
	return binary.LittleEndian.Uint64(sum[:])
}

// Knows reports whether the server at url accepted entries with this key when it last accepted any.
func (l Learned) Knows(url *url.URL, key string, plain bool) bool {
	return l.Took && l.Config == fingerprint(url, key, nil, plain)
}

// Origin identifies this machine and state in every request.
type Origin struct {
	Machine, Host, Epoch, UserAgent string

	// Incarnation is random, drawn whenever the state is opened; "": the drainer keeps no ledger.
	Incarnation string
}

// EpochOf returns the epoch in which a stream's lines go on.
func (o *Origin) EpochOf(s *Stream) string { return cmp.Or(s.Epoch, o.Epoch) }

const (
	inFlight = 4                      // streams sent at once
	ackDelay = 100 * time.Millisecond // acknowledgements are grouped for at most so long,
	ackBytes = 1 << 20                // or for so many raw bytes
)

// Drainer delivers the rows of one destination. The exported fields are optional and set before Run.
type Drainer struct {
	Log    *slog.Logger // silent at first. One line per change of state; never entries or keys
	Client *http.Client // nil: NewClient. Its CheckRedirect is not used

	dest   Destination
	origin Origin
	queue  Queue
	memory Memory
	owner  Owner

	ackDelay time.Duration // tests set another

	wake    Bell
	retry   Bell
	arrived atomic.Bool                     // with wake: batches arrived
	changed atomic.Bool                     // with retry: the configuration changed
	flushed atomic.Bool                     // with retry: a Retry-After ends too
	paused  atomic.Bool                     // send nothing
	hasty   atomic.Int32                    // callers that wait for the queue to become empty
	writer  atomic.Pointer[protocol.Writer] // as the last answer said; nil before Run

	mu                   sync.Mutex
	health               Health           // guarded by mu
	inStep               *protocol.Writer // what InStep was called with; guarded by mu
	behind               string           // what StepBack was called with; "" nothing; guarded by mu
	joined               []uint64         // streams that StreamInStep was called for; guarded by mu
	trouble, troubleHint string           // what Explain was called with; guarded by mu
}

// NewDrainer returns a drainer for the batches of d in q. It starts nothing. With a nil owner no blob can be opened.
func NewDrainer(d Destination, o Origin, q Queue, m Memory, owner Owner) *Drainer {
	if owner == nil {
		owner = noOwner{}
	}
	dr := &Drainer{
		Log: slog.New(slog.DiscardHandler), ackDelay: ackDelay,
		dest: d, origin: o, queue: q, memory: m, owner: owner,
		wake: NewBell(), retry: NewBell(),
	}
	dr.health = Health{State: StateUnknown, Protocol: "unknown"}
	if d.Plain {
		dr.health.Protocol = "plain"
	}
	return dr
}

// Wake tells the drainer that batches arrived. It never blocks.
func (d *Drainer) Wake() {
	d.arrived.Store(true)
	d.wake.Ring()
}

// Retry ends every backoff and refusal wait, but not a running Retry-After. With configChanged (also a new key) it
// discards limits learned before. It never blocks.
func (d *Drainer) Retry(configChanged bool) {
	if configChanged {
		d.changed.Store(true)
	}
	d.retry.Ring()
}

// Hasten has acknowledgements recorded at once until done is called, because a caller waits for the queue to become
// empty. It never blocks.
func (d *Drainer) Hasten() (done func()) {
	d.hasty.Add(1)
	d.wake.Ring()
	return func() { d.hasty.Add(-1) }
}

// SetPaused keeps everything here, or with false lets it go again. What is in flight is finished. It never blocks.
func (d *Drainer) SetPaused(paused bool) {
	if d.paused.Swap(paused) != paused {
		d.wake.Ring()
	}
}

// InStep ends the wait after Owner.OutOfStep: the server was compared, and the queue holds only what it lacks. at is
// the server's ledger when the comparison began. Unless it is empty, incarnation is this drainer's from now on. It
// never blocks.
func (d *Drainer) InStep(at protocol.Ledger, incarnation string) {
	d.mu.Lock()
	d.inStep = &protocol.Writer{Incarnation: cmp.Or(incarnation, d.lastWriter().Incarnation), Known: at}
	d.mu.Unlock()
	d.wake.Ring()
}

// StepBack stops sending as if the server had refused with code, and calls Owner.OutOfStep: the caller found out that
// the server stores other lines than this queue continues. It does nothing and returns false if incarnation no longer
// writes, because the server was compared meanwhile. It never blocks.
func (d *Drainer) StepBack(code, incarnation string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if incarnation != d.lastWriter().Incarnation {
		return false
	}
	d.behind = code
	d.wake.Ring()
	return true
}

// lastWriter returns what the next request names, with no ledger before Run. The caller holds mu.
func (d *Drainer) lastWriter() protocol.Writer {
	if d.inStep != nil {
		return *d.inStep
	}
	if w := d.writer.Load(); w != nil {
		return *w
	}
	return protocol.Writer{Incarnation: d.origin.Incarnation}
}

// Ledger returns the server's ledger as it is known here, and the incarnation of this drainer's writes.
func (d *Drainer) Ledger(ctx context.Context) (known protocol.Ledger, incarnation string, err error) {
	d.mu.Lock()
	w, begun := d.lastWriter(), d.inStep != nil || d.writer.Load() != nil
	d.mu.Unlock()
	if !begun { // Run will know what is kept
		learned, err := d.memory.Learned(ctx, d.dest.Key)
		return learned.Ledger, w.Incarnation, err
	}
	return w.Known, w.Incarnation, nil
}

// Explain shows in Health why nothing is sent while the drainer is out of step; "" for no reason beyond that.
func (d *Drainer) Explain(detail, hint string) {
	d.mu.Lock()
	d.trouble, d.troubleHint = detail, hint
	d.mu.Unlock()
	d.wake.Ring()
}

// StreamInStep is InStep after a refusal of one stream. It never blocks.
func (d *Drainer) StreamInStep(stream uint64) {
	d.mu.Lock()
	d.joined = append(d.joined, stream)
	d.mu.Unlock()
	d.wake.Ring()
}

// takeSteps returns what InStep, StreamInStep and StepBack were called with since the last call. What InStep was called
// with is in force then.
func (d *Drainer) takeSteps() (at *protocol.Writer, joined []uint64, behind string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, joined, behind = d.inStep, d.joined, d.behind
	d.inStep, d.joined, d.behind = nil, nil, ""
	if at != nil {
		d.writer.Store(at)
	}
	return at, joined, behind
}

// Flush is Retry(false) that ends a running Retry-After too: a person asks. It never blocks.
func (d *Drainer) Flush() {
	d.flushed.Store(true)
	d.retry.Ring()
}

// Run delivers until ctx is done. Then it waits up to a second for requests in flight and records acknowledgements. It
// always returns nil: failures are retried and shown in Health.
func (d *Drainer) Run(ctx context.Context) error {
	if d.Client == nil {
		d.Client = NewClient(inFlight)
	}
	learned, err := d.memory.Learned(ctx, d.dest.Key)
	if err != nil {
		// Everything in it can be learned again.
		d.Log.Warn("cannot read learned server limits", "server", spellAddress(d.dest.URL), "err", err)
	}
	d.writer.Store(&protocol.Writer{Incarnation: d.origin.Incarnation, Known: learned.Ledger})
	return newLoop(d, learned).run(ctx)
}

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
