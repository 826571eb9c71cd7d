// Package delivery brings queued batches to their servers. It runs one drainer per server, and decides which key a
// server gets, when sending is paused, and which servers are retired. It does not know what is queued or why.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
)

// Owner is what Servers need of the daemon. Its methods must be safe for concurrent use.
type Owner interface {
	// The drainers call these.
	outbox.Owner
	// ConfigInForce reports whether the configuration in force is the one on disk.
	ConfigInForce() bool
	// TrustsProject reports whether lines of the project in a folder go to the server that the project itself names.
	TrustsProject(dir string) bool
}

// Config is what Servers needs. All fields except Plain are required.
type Config struct {
	State  *state.DB
	Owner  Owner
	Origin outbox.Origin
	Client *http.Client
	Proven protocol.ProvenServers // servers that commands without the daemon ask for a proof too
	Plain  bool                   // never use the extension of the protocol
	Log    *slog.Logger
}

// Servers runs one drainer per destination, so that a server that is down never delays another. A destination is the
// URL of a server, possibly with the folder of a project: see project.DestinationKey. Safe for concurrent use.
type Servers struct {
	Config

	contacts    contacts
	keyWithheld atomic.Bool // a key was not shown because the configuration on disk is not in force

	mu     sync.Mutex
	own    string                     // the user's own server; "": none; guarded by mu
	ownKey *keyFile                   // guarded by mu
	paused bool                       // nothing is sent; guarded by mu
	all    map[string]*outbox.Drainer // by destination; guarded by mu
	// clients make the requests, each to one destination; guarded by mu
	clients map[string]*http.Client
	opened  []*outbox.Drainer // not yet running; guarded by mu
	bell    outbox.Bell       // rings when opened or contacts has grown
}

// New returns Servers without any server. It starts nothing.
func New(c Config) *Servers {
	return &Servers{
		Config: c, ownKey: &keyFile{optional: true},
		contacts: contacts{limit: contactTime, fresh: control.ContactFresh,
			known: map[string]contact{}, under: map[string]chan struct{}{}},
		all: map[string]*outbox.Drainer{}, clients: map[string]*http.Client{}, bell: outbox.NewBell(),
	}
}

// Run drains to every destination with rows until ctx is done.
func (s *Servers) Run(ctx context.Context) error {
	for _, dest := range s.State.Outbox.Destinations() {
		if err := s.Open(dest); err != nil {
			s.Log.Error("cannot deliver to a server", "server", dest, "err", err)
		}
	}
	if own := s.Own(); own != "" {
		if err := s.Open(own); err != nil {
			return err
		}
	}
	var wg sync.WaitGroup
	defer s.noteProven()
	defer wg.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.bell:
		}
		for _, drainer := range s.takeOpened() {
			wg.Go(func() {
				if err := drainer.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
					s.Log.Error("delivery ended", "err", err)
				}
			})
		}
		for _, dest := range s.contacts.take() {
			wg.Go(func() { s.probeContact(ctx, dest) })
		}
	}
}

func (s *Servers) takeOpened() []*outbox.Drainer {
	s.mu.Lock()
	defer s.mu.Unlock()
	opened := s.opened
	s.opened = nil
	return opened
}

// Open makes sure that dest has a drainer. An error means that its URL is invalid.
func (s *Servers) Open(dest string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[dest] != nil {
		return nil
	}
	raw, _, _ := project.SplitDestination(dest)
	url, _, err := outbox.NormalizeURL(raw)
	if err != nil {
		return fmt.Errorf("open destination %s: %w", raw, err)
	}
	to := outbox.Destination{Key: dest, URL: url, APIKey: s.keyOf(dest, url), Plain: s.Plain}
	drainer := outbox.NewDrainer(to, s.Origin, s.State.Outbox, s.State.Outbox, s.Owner)
	drainer.Log, drainer.Client = s.Log, s.clientOf(dest, url)
	drainer.SetPaused(s.paused)
	s.all[dest] = drainer
	s.opened = append(s.opened, drainer)
	s.bell.Ring()
	return nil
}

func (s *Servers) ownAndPaused() (own string, paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own, s.paused
}

// Own returns the user's own server; "" when none is set.
func (s *Servers) Own() string {
	own, _ := s.ownAndPaused()
	return own
}

// Wake tells the drainer of a destination about new rows. It never blocks.
func (s *Servers) Wake(dest string) {
	if drainer := s.drainer(dest); drainer != nil {
		drainer.Wake()
	}
}

// Retry ends back-off and the waiting for servers that refuse. With configChanged (also after a new key) it discards
// limits learned before. It closes idle connections, which may be dead. It does not end the user's pause.
func (s *Servers) Retry(configChanged bool) {
	s.closeIdle()
	for _, drainer := range s.drainers() {
		drainer.Retry(configChanged)
	}
}

// Flush is Retry, and also ignores a server's Retry-After.
func (s *Servers) Flush() {
	for _, drainer := range s.drainers() {
		drainer.Flush()
	}
}

// Hasten has acknowledgements recorded at once until done is called.
func (s *Servers) Hasten() (done func()) {
	var all []func()
	for _, drainer := range s.drainers() {
		all = append(all, drainer.Hasten())
	}
	return func() {
		for _, done := range all {
			done()
		}
	}
}

// setPaused stops sending to every server, or resumes it.
func (s *Servers) setPaused(paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = paused
	for _, drainer := range s.all {
		drainer.SetPaused(paused)
	}
}

// drainer returns the drainer of a destination; nil if Open was not called for it.
func (s *Servers) drainer(dest string) *outbox.Drainer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[dest]
}

func (s *Servers) drainers() map[string]*outbox.Drainer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.all)
}

// Protocol returns what a server speaks, as in outbox.Health; "" for a server that gets nothing.
func (s *Servers) Protocol(dest string) string {
	if drainer := s.drainer(dest); drainer != nil {
		return drainer.Health().Protocol
	}
	return ""
}

// SpeaksExtension reports whether a server is known to speak the extension of the protocol: from its last answer, or
// before the first one from what it announced to an earlier run.
func (s *Servers) SpeaksExtension(dest string) bool {
	h, learned := s.known(dest)
	return h.Protocol == "ccship" || learned.Extension
}

// Takes reports whether a server is known to accept a kind of row besides lines.
func (s *Servers) Takes(dest string, kind outbox.Kind) bool {
	h, learned := s.known(dest)
	return h.Accepts.Has(kind) || learned.Accepts.Has(kind)
}

// known returns what is known about a server, from this run or, until it learns something, from earlier runs.
func (s *Servers) known(dest string) (h outbox.Health, learned outbox.Learned) {
	drainer := s.drainer(dest)
	if drainer == nil {
		return h, learned
	}
	if h = drainer.Health(); h.State != outbox.StateUnknown || h.Protocol == "plain" {
		return h, learned
	}
	learned, err := s.State.Outbox.Learned(context.Background(), dest)
	if err != nil {
		s.Log.Warn("cannot read what is known of a server", "server", dest, "err", err)
	}
	return h, learned
}

// AnyTakes reports whether any server is known to accept a kind of row.
func (s *Servers) AnyTakes(kind outbox.Kind) bool { return len(s.taking(kind)) > 0 }

// TakingDocuments returns the servers that accept documents; none while the user has paused delivery.
func (s *Servers) TakingDocuments() []string {
	if _, paused := s.ownAndPaused(); paused {
		return nil
	}
	return s.taking(outbox.Documents)
}

func (s *Servers) taking(kind outbox.Kind) (dests []string) {
	for dest := range s.drainers() {
		if s.Takes(dest, kind) {
			dests = append(dests, dest)
		}
	}
	return dests
}

// Steps gives the reconciler control over sending: it stops and resumes requests to servers that store something else.
type Steps struct{ *Servers }

// InStep resumes sending to a server that refused because it stores something else. See outbox.Drainer.
func (s Steps) InStep(dest string, at protocol.Ledger, incarnation string) {
	if drainer := s.drainer(dest); drainer != nil {
		drainer.InStep(at, incarnation)
	}
}

// Ledger returns the last known ledger of a server, and the incarnation that writes to it; "" when none does.
func (s Steps) Ledger(ctx context.Context, dest string) (known protocol.Ledger, incarnation string, err error) {
	if err := s.Open(dest); err != nil { // Run may not have begun yet
		return protocol.Ledger{}, "", err
	}
	return s.drainer(dest).Ledger(ctx)
}

// Store returns the id of the database that a server's queue continues; "" when none is known. The state keeps it a
// little later: what was learned there may name the one before.
func (s *Servers) Store(ctx context.Context, dest string) (string, error) {
	if drainer := s.drainer(dest); drainer != nil {
		known, _, err := drainer.Ledger(ctx)
		return known.Store, err
	}
	learned, err := s.State.Outbox.Learned(ctx, dest)
	return learned.Ledger.Store, err
}

// StepBack stops sending to a server until it has been compared, for the reason in code. See outbox.Drainer.
func (s Steps) StepBack(dest, code, incarnation string) bool {
	drainer := s.drainer(dest)
	return drainer != nil && drainer.StepBack(code, incarnation)
}

// StreamInStep is InStep for one stream.
func (s Steps) StreamInStep(dest string, stream uint64) {
	if drainer := s.drainer(dest); drainer != nil {
		drainer.StreamInStep(stream)
	}
}

// Trouble sets why nothing is sent to a server that is out of step; "" when there is no further reason.
func (s Steps) Trouble(dest, why, hint string) {
	if drainer := s.drainer(dest); drainer != nil {
		drainer.Explain(why, hint)
	}
}

// Resend queues again what a server has lost besides lines.
func (s Steps) Resend(ctx context.Context, dest string) error {
	learned, err := s.State.Outbox.Learned(ctx, dest)
	if err != nil || learned.Accepts == 0 {
		return err
	}
	return s.Owner.Accepts(dest, learned.Accepts, true)
}
