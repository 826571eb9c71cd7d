package delivery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
)

// errOtherKey means that the key was not made for this server.
var errOtherKey = errors.New("the key is another one now, and this is not your server any more")

// errNotInForce means that the server may no longer be the user's own.
var errNotInForce = errors.New("the key is another one now, and the configuration has changed too and is not in " +
	"force yet")

// SetOwn makes the server of a configuration the user's own, with its key file. Rows queued for the former server still
// go there.
func (s *Servers) SetOwn(c *config.Config) {
	key := &keyFile{path: c.APIKeyFile, optional: c.OriginOf("api_key_file") == config.FromDefault}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own, s.ownKey = c.ServerURL, key
}

// ownWithKey returns the user's own server, and the file with its key.
func (s *Servers) ownWithKey() (own string, key *keyFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own, s.ownKey
}

// Reader returns a client of a server's reading API. It is never nil.
func (s *Servers) Reader(dest string) *remote.Client {
	client := &remote.Client{HTTP: s.Client, Agent: s.Origin.UserAgent}
	raw, dir, ofProject := project.SplitDestination(dest)
	base, key, err := outbox.NormalizeURL(raw) // a tombstone may have a spelling of an earlier version
	if err != nil {
		client.Base, client.Key = &url.URL{}, func() (string, error) { return "", err }
		return client
	}
	if ofProject {
		key = project.DestinationKey(key, dir)
	}
	client.Base, client.Key = base, s.keyOf(key, base)
	s.mu.Lock()
	defer s.mu.Unlock()
	client.HTTP = s.clientOf(key, base)
	return client
}

// keyOf returns the function that reads a destination's key: that of the project which named it, or the user's.
func (s *Servers) keyOf(dest string, url *url.URL) func() (string, error) {
	if _, dir, ofProject := project.SplitDestination(dest); ofProject {
		return projectKey(dir)
	}
	return s.userKey(dest, url)
}

// userKey reads the user's key for dest. A retired server that still has rows waiting gets a key only if it is the key
// under which it accepted rows: the key file may now hold the new server's key. The same goes for the user's own server
// while the configuration on disk is not in force, because that may name another server.
func (s *Servers) userKey(dest string, url *url.URL) func() (string, error) {
	return func() (string, error) {
		own, file := s.ownWithKey()
		key, err := file.read()
		if err != nil || key == "" || dest == own && s.Owner.ConfigInForce() {
			return key, err
		}
		learned, err := s.State.Outbox.Learned(context.Background(), dest)
		switch {
		case err != nil:
			return "", err
		case learned.Knows(url, key, s.Plain):
			return key, nil
		case dest == own:
			s.keyWithheld.Store(true)
			return "", errNotInForce
		}
		return "", errOtherKey
	}
}

// projectKey reads the key from a project's own credentials, again after each change.
func projectKey(dir string) func() (string, error) {
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

// RetryWithheldKey retries servers whose key was withheld, once the configuration on disk is in force.
func (s *Servers) RetryWithheldKey() {
	if s.keyWithheld.Swap(false) {
		s.Retry(true)
	}
}

// KeyStamps changes whenever a file with a key in it does: the user's own, or a project's.
func (s *Servers) KeyStamps() string {
	_, own := s.ownWithKey()
	stamps := []string{own.stamp()}
	for dest := range s.drainers() {
		if _, dir, ofProject := project.SplitDestination(dest); ofProject {
			file := keyFile{path: project.CredentialsPath(dir)}
			stamps = append(stamps, dest+" "+file.stamp())
		}
	}
	slices.Sort(stamps)
	return strings.Join(stamps, "\n")
}

// keyFile is a file with an API key. It is read again whenever it or its mode changes, so a new key needs no restart,
// and a key that others can read now is not used.
type keyFile struct {
	path     string
	optional bool // a missing file means a server without keys

	mu   sync.Mutex
	key  string      // guarded by mu
	when time.Time   // modification time when key was read; guarded by mu
	size int64       // guarded by mu
	mode os.FileMode // guarded by mu
}

// read returns the key in the file.
func (k *keyFile) read() (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	st, statErr := os.Stat(k.path) // before reading: a file replaced in between is read again next time
	if statErr == nil && k.key != "" && st.ModTime().Equal(k.when) && st.Size() == k.size && st.Mode() == k.mode {
		return k.key, nil
	}
	key, err := config.ReadAPIKey(k.path)
	if k.optional && errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if statErr == nil {
		k.key, k.when, k.size, k.mode = key, st.ModTime(), st.Size(), st.Mode()
	}
	return key, nil
}

// stamp changes whenever the file does.
func (k *keyFile) stamp() string {
	st, err := os.Stat(k.path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(st.ModTime().UnixNano(), st.Size(), st.Mode())
}

// Pause is the user's pause. It stops sending, not reading: new lines enter the outbox, up to its cap. The state keeps
// it across a restart. It ends at a wall-clock time, so that sleep of the machine does not prolong it. Safe for
// concurrent use.
type Pause struct {
	servers *Servers
	log     *slog.Logger

	changing sync.Mutex // held while kept and servers are changed
	kept     *state.Persisted[*control.Pause]
}

// longestPause is longer than any useful pause.
const longestPause = 10 * 365 * 24 * time.Hour

// LoadPause restores a pause that began before the start. Call it before the servers run.
func LoadPause(ctx context.Context, db *state.DB, servers *Servers, log *slog.Logger) (*Pause, error) {
	kept, err := state.LoadPersisted[*control.Pause](ctx, db, "pause")
	if err != nil {
		return nil, err
	}
	servers.setPaused(kept.Get() != nil)
	return &Pause{servers: servers, log: log, kept: kept}, nil
}

// Current returns the pause; nil when there is none. The caller must not change it.
func (p *Pause) Current() *control.Pause { return p.kept.Get() }

// Begin stops sending, for a while or until End. It replaces an earlier pause.
func (p *Pause) Begin(ctx context.Context, req control.PauseRequest) (control.PauseState, error) {
	now := time.Now().UTC().Round(0)
	next := &control.Pause{Since: now}
	if req.For != "" {
		length, err := time.ParseDuration(req.For)
		if err != nil || length <= 0 || length > longestPause {
			return control.PauseState{}, control.Usage(fmt.Sprintf("invalid pause duration %q", req.For),
				"a duration looks like 30m or 2h")
		}
		until := now.Add(length)
		next.Until = &until
	}
	p.changing.Lock()
	defer p.changing.Unlock()
	was := p.kept.Get() != nil
	if err := p.set(ctx, next); err != nil {
		return control.PauseState{}, err
	}
	p.log.Info("paused by the user", "until", next.Until)
	return control.PauseState{SchemaVersion: control.SchemaVersion, Paused: true, Was: was, Pause: next}, nil
}

// End ends the pause. It reports whether there was one.
func (p *Pause) End(ctx context.Context) (bool, error) {
	return p.endIf(ctx, func(*control.Pause) bool { return true })
}

// Expire ends the pause when its time is up.
func (p *Pause) Expire(ctx context.Context) error {
	_, err := p.endIf(ctx, func(c *control.Pause) bool { return c.Until != nil && !time.Now().Round(0).Before(*c.Until) })
	return err
}

func (p *Pause) endIf(ctx context.Context, over func(*control.Pause) bool) (bool, error) {
	p.changing.Lock()
	defer p.changing.Unlock()
	was := p.kept.Get()
	if was == nil || !over(was) {
		return false, nil
	}
	if err := p.set(ctx, nil); err != nil {
		return false, err
	}
	p.log.Info("the user's pause is over", "since", was.Since)
	return true, nil
}

// set changes the pause. The caller holds changing.
func (p *Pause) set(ctx context.Context, next *control.Pause) error {
	err := p.kept.Change(ctx, func(*control.Pause) (*control.Pause, bool) { return next, true })
	if err == nil {
		p.servers.setPaused(next != nil)
	}
	return err
}
