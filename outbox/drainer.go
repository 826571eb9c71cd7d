package outbox

import (
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
)

// Destination is a server.
type Destination struct {
	Key string   // names it in the Queue
	URL *url.URL // base of its requests, as NormalizeURL returns it
	// APIKey is asked before each request; an error stops delivery until a later try. An empty key is not sent.
	APIKey func() (key string, err error)
	Plain  bool // never send the extension
}

// fingerprint changes with whatever may make the server answer otherwise: its address, the key, the protocol.
func (d *Destination) fingerprint() uint64 {
	key, err := d.APIKey()
	return fingerprint(d.URL, key, err, d.Plain)
}

func fingerprint(url *url.URL, key string, err error, plain bool) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%v\n%v", url, key, err, plain))
	return binary.LittleEndian.Uint64(sum[:])
}

// Knows says whether the server at url took entries with this very key when it took some last.
func (l Learned) Knows(url *url.URL, key string, plain bool) bool {
	return l.Took && l.Config == fingerprint(url, key, nil, plain)
}

// Origin is what every request says of this end.
type Origin struct{ Machine, Host, Epoch, UserAgent string }

// Drainer delivers the rows of one destination. The exported fields are optional and set before Run.
type Drainer struct {
	Log      *slog.Logger // nil: silent. A line for each change of state, none for entries or keys
	Client   *http.Client // nil: an own one. Its CheckRedirect is not used
	InFlight int          // streams sent at once; 0: 4
	AckDelay time.Duration
	AckBytes int64 // acknowledgements wait for company at most AckDelay (0: 100 ms) or so many raw bytes (0: 1 MiB)
	// OnAnnounced is called, from a goroutine of Run, when the server begins to speak the extension after it took
	// entries without it. All it took that way is settled by then. It may be called again when late answers come in.
	OnAnnounced func()
	// OnForgotten is called, from a goroutine of Run, when the server says that it keeps nothing of a stream any more,
	// for someone forgot it there. What was sent is settled by then. stream may be that of a transcript's blobs.
	OnForgotten func(stream uint64)
	// OnAccepts is called, from a goroutine of Run, when the server begins to take kinds beside lines; again says that
	// it took lines before, so that rows of these kinds may have been withheld. It returns nil once what follows from it
	// is durable, and is called again when it fails, and after a crash. The rows whose answer said so are still there.
	OnAccepts func(kinds Kinds, again bool) error
	// OnLinkRequests is called from Run when the server says that link requests wait there. It must not block.
	OnLinkRequests func()
	// OpenBlob opens the file of a blob that does not lie in its row. Any error means that it can be sent no more.
	OpenBlob func(root, path string) (Content, error)

	dest   Destination
	origin Origin
	queue  Queue
	memory Memory

	wake    chan struct{}
	retry   chan struct{}
	changed atomic.Bool // with retry: the configuration changed
	paused  atomic.Bool // nothing is to be sent

	mu     sync.Mutex
	health Health // guarded by mu
}

// NewDrainer returns a drainer of d's rows in q. It starts nothing.
func NewDrainer(d Destination, o Origin, q Queue, m Memory) *Drainer {
	dr := &Drainer{
		InFlight: 4, AckDelay: 100 * time.Millisecond, AckBytes: 1 << 20,
		dest: d, origin: o, queue: q, memory: m,
		wake: make(chan struct{}, 1), retry: make(chan struct{}, 1),
	}
	dr.health = Health{State: StateUnknown, Protocol: "unknown"}
	if d.Plain {
		dr.health.Protocol = "plain"
	}
	return dr
}

// Wake says that rows arrived. It never blocks.
func (d *Drainer) Wake() { ring(d.wake) }

// Retry ends back-off of every kind, but never a running Retry-After. After a change of the configuration
// or the key, limits learned under the old one are forgotten. It never blocks.
func (d *Drainer) Retry(configChanged bool) {
	if configChanged {
		d.changed.Store(true)
	}
	ring(d.retry)
}

// SetPaused stops sending, or resumes it. Requests in flight are finished. It never blocks.
func (d *Drainer) SetPaused(paused bool) {
	if d.paused.Swap(paused) != paused {
		ring(d.wake)
	}
}

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// Run delivers until ctx is done. Then it waits shortly for what is in flight and records what was acknowledged. It
// returns nil; whatever goes wrong is tried again and shown in Health.
func (d *Drainer) Run(ctx context.Context) error {
	d.defaults()
	learned, err := d.memory.Learned(ctx, d.dest.Key)
	if err != nil {
		// Everything in it can be learned again.
		d.Log.Warn("cannot read what is known of the server", "server", d.dest.URL.String(), "err", err)
	}
	return newLoop(d, learned).run(ctx)
}

func (d *Drainer) defaults() {
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.InFlight <= 0 {
		d.InFlight = 4
	}
	if d.AckDelay <= 0 {
		d.AckDelay = 100 * time.Millisecond
	}
	if d.AckBytes <= 0 {
		d.AckBytes = 1 << 20
	}
	if d.Client == nil {
		d.Client = NewClient(d.InFlight)
	}
}
