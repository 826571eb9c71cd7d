package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
)

// destinations runs one drainer per server, so that one that is down never delays another.
type destinations struct {
	db     *state.DB
	origin outbox.Origin
	own    string // key of the user's own server, "" none
	ownKey *keyFile
	plain  bool // protocol = "plain"
	client *http.Client
	log    *slog.Logger
	// announced is told when a server that took lines as a plain one begins to speak the extension.
	announced func(dest string)

	mu     sync.Mutex
	all    map[string]*outbox.Drainer // guarded by mu
	opened []*outbox.Drainer          // not yet running; guarded by mu
	bell   chan struct{}              // opened has grown
}

func newDestinations(db *state.DB, log *slog.Logger) *destinations {
	return &destinations{
		db: db, log: log,
		all:  map[string]*outbox.Drainer{},
		bell: make(chan struct{}, 1),
	}
}

// Run drains to every destination that has rows or gets some, until ctx is done.
func (d *destinations) Run(ctx context.Context) error {
	for _, dest := range d.db.Destinations() {
		if err := d.open(dest); err != nil {
			d.log.Error("cannot deliver to a server", "server", dest, "err", err)
		}
	}
	if d.own != "" {
		if err := d.open(d.own); err != nil {
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

// open makes sure that dest has a drainer. The key of a project's own server comes from the project.
func (d *destinations) open(dest string) error {
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
	key := d.ownKey.read
	if projects {
		key = projectCredentials(dir)
	}
	dr := outbox.NewDrainer(outbox.Destination{Key: dest, URL: url, APIKey: key, Plain: d.plain}, d.origin, d.db, d.db)
	dr.Log, dr.Client = d.log, d.client
	dr.OnAnnounced = func() { d.announced(dest) }
	d.all[dest] = dr
	d.opened = append(d.opened, dr)
	select {
	case d.bell <- struct{}{}:
	default:
	}
	return nil
}

// wake tells a drainer that rows arrived.
func (d *destinations) wake(dest string) {
	if dr := d.get(dest); dr != nil {
		dr.Wake()
	}
}

// keyStamps changes whenever a file with a key in it does: the user's own, or a project's.
func (d *destinations) keyStamps() string {
	stamps := []string{d.ownKey.stamp()}
	for dest := range d.drainers() {
		if _, dir, projects := strings.Cut(dest, "#"); projects {
			file := keyFile{path: filepath.Join(dir, ".codetracker", "credentials.json")}
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

// speaks says whether a server is known to speak the extension.
func (d *destinations) speaks(dest string) bool {
	dr := d.get(dest)
	return dr != nil && dr.Health().Protocol == "ccship"
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
			return "", fmt.Errorf("no api_key in %s/.codetracker/credentials.json", dir)
		}
		return p.APIKey, nil
	}
}
