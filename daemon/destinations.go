package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
)

// deliveryOwner is what destinations need of the daemon.
type deliveryOwner interface {
	outbox.Owner
	// Settled reports whether the configuration in force is the one on disk.
	Settled() bool
}

// destinations runs one drainer per server, so that one that is down never delays another.
type destinations struct {
	db     *state.DB
	origin outbox.Origin
	plain  bool // protocol = "plain"
	client *http.Client
	log    *slog.Logger
	owner  deliveryOwner
	// withheld: a key was, because the configuration is not settled.
	withheld atomic.Bool

	mu     sync.Mutex
	own    string                     // key of the user's own server, "" none; guarded by mu
	ownKey *keyFile                   // guarded by mu
	paused bool                       // nothing is to be sent; guarded by mu
	all    map[string]*outbox.Drainer // guarded by mu
	opened []*outbox.Drainer          // not yet running; guarded by mu
	bell   chan struct{}              // opened has grown
}

func newDestinations(db *state.DB, owner deliveryOwner, log *slog.Logger) *destinations {
	return &destinations{
		db: db, owner: owner, log: log,
		all:  map[string]*outbox.Drainer{},
		bell: make(chan struct{}, 1),
	}
}

// Run drains to every destination that has rows or gets some, until ctx is done.
func (d *destinations) Run(ctx context.Context) error {
	for _, dest := range d.db.Destinations() {
		if err := d.Open(dest); err != nil {
			d.log.Error("cannot deliver to a server", "server", dest, "err", err)
		}
	}
	if own := d.ownServer(); own != "" {
		if err := d.Open(own); err != nil {
			return err
		}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.bell:
		}
		for _, dr := range d.takeOpened() {
			wg.Go(func() {
				if err := dr.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
					d.log.Error("delivery ended", "err", err)
				}
			})
		}
	}
}

func (d *destinations) takeOpened() []*outbox.Drainer {
	d.mu.Lock()
	defer d.mu.Unlock()
	opened := d.opened
	d.opened = nil
	return opened
}

// ownServer is the key of the user's own server, "" none.
func (d *destinations) ownServer() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.own
}

// ownWithKey is the key of the user's own server, and the file that opens it.
func (d *destinations) ownWithKey() (own string, key *keyFile) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.own, d.ownKey
}

// setOwn makes another server the user's own, with another key file. What is queued for the one before still goes
// there.
func (d *destinations) setOwn(own string, key *keyFile) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.own, d.ownKey = own, key
}

// setPaused stops sending to every server, or resumes it.
func (d *destinations) setPaused(paused bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paused = paused
	for _, dr := range d.all {
		dr.SetPaused(paused)
	}
}

// Open makes sure that dest has a drainer. The key of a project's own server comes from the project.
func (d *destinations) Open(dest string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all[dest] != nil {
		return nil
	}
	raw, dir, projects := strings.Cut(dest, "#")
	url, _, err := outbox.NormalizeURL(raw)
	if err != nil {
		return fmt.Errorf("open destination %s: %w", raw, err)
	}
	key := d.userKey(dest, url)
	if projects {
		key = projectCredentials(dir)
	}
	to := outbox.Destination{Key: dest, URL: url, APIKey: key, Plain: d.plain}
	dr := outbox.NewDrainer(to, d.origin, d.db, d.db, d.owner)
	dr.Log, dr.Client = d.log, d.client
	dr.SetPaused(d.paused)
	d.all[dest] = dr
	d.opened = append(d.opened, dr)
	select {
	case d.bell <- struct{}{}:
	default:
	}
	return nil
}

// errOtherKey keeps a key from a server it was not made for.
var errOtherKey = errors.New("the key is another one now, and this is not your server any more")

// errUnsettled keeps a key from a server that may not be the user's own any more.
var errUnsettled = errors.New("the key is another one now, and the configuration has changed too and is not in force yet")

// userKey reads the user's key for dest. A server that is the user's own no more, and still has rows waiting, gets
// only the key that it took rows with: a key is made for one server, and the file holds the new one's by now. So does
// the user's own while the configuration waits to be read, for it may name another.
func (d *destinations) userKey(dest string, url *url.URL) func() (string, error) {
	return func() (string, error) {
		own, file := d.ownWithKey()
		key, err := file.read()
		if err != nil || key == "" || dest == own && d.owner.Settled() {
			return key, err
		}
		learned, err := d.db.Learned(context.Background(), dest)
		switch {
		case err != nil:
			return "", err
		case learned.Knows(url, key, d.plain):
			return key, nil
		case dest == own:
			d.withheld.Store(true)
			return "", errUnsettled
		}
		return "", errOtherKey
	}
}

// wake tells a drainer that rows arrived.
func (d *destinations) wake(dest string) {
	if dr := d.get(dest); dr != nil {
		dr.Wake()
	}
}

// keyStamps changes whenever a file with a key in it does: the user's own, or a project's.
func (d *destinations) keyStamps() string {
	_, own := d.ownWithKey()
	stamps := []string{own.stamp()}
	for dest := range d.drainers() {
		if _, dir, projects := strings.Cut(dest, "#"); projects {
			file := keyFile{path: project.CredentialsPath(dir)}
			stamps = append(stamps, dest+" "+file.stamp())
		}
	}
	slices.Sort(stamps)
	return strings.Join(stamps, "\n")
}

// retry ends back-off and pauses everywhere.
func (d *destinations) retry(configChanged bool) {
	for _, dr := range d.drainers() {
		dr.Retry(configChanged)
	}
}

func (d *destinations) get(dest string) *outbox.Drainer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all[dest]
}

func (d *destinations) drainers() map[string]*outbox.Drainer {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make(map[string]*outbox.Drainer, len(d.all))
	for k, v := range d.all {
		out[k] = v
	}
	return out
}

// SpeaksExtension says whether a server is known to speak the extension.
func (d *destinations) SpeaksExtension(dest string) bool {
	dr := d.get(dest)
	return dr != nil && dr.Health().Protocol == "ccship"
}

// takes says whether a server is known to take a kind beside lines.
func (d *destinations) takes(dest string, k outbox.Kind) bool {
	dr := d.get(dest)
	if dr == nil {
		return false
	}
	h := dr.Health()
	if h.State != outbox.StateUnknown || h.Accepts.Has(k) {
		return h.Accepts.Has(k)
	}
	learned, err := d.db.Learned(context.Background(), dest) // before its first answer, what it said last
	return err == nil && learned.Accepts.Has(k)
}

// projectCredentials reads the key from a project's own credentials file, anew each time it changed.
func projectCredentials(dir string) func() (string, error) {
	finder := project.NewFinder()
	return func() (string, error) {
		p, err := finder.Find(dir)
		if err != nil {
			return "", err
		}
		if p.APIKey == "" {
			return "", fmt.Errorf("no api_key in %s", project.CredentialsPath(dir))
		}
		return p.APIKey, nil
	}
}
