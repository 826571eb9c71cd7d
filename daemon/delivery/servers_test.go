package delivery

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// testOwner is an owner whose answers a test sets. No drainer runs, so nothing else is asked of it.
type testOwner struct {
	outbox.Owner
	pending bool   // the configuration on disk is not in force
	trusted string // folder of the only project that is trusted
}

func (o *testOwner) ConfigInForce() bool           { return !o.pending }
func (o *testOwner) TrustsProject(dir string) bool { return dir == o.trusted }

const ownURL, retiredURL = "http://127.0.0.1:1/own", "http://127.0.0.1:1/retired"

// newServers returns servers on a state at path, whose own server takes the key in a file.
func newServers(t *testing.T, path string, owner *testOwner) (s *Servers, keyPath string) {
	t.Helper()
	db := kit.Try(state.Open(t.Context(), state.Options{Path: path, HeadRoom: 1})).Must(t)
	t.Cleanup(func() { db.Close() })
	dir := t.TempDir()
	keyPath = filepath.Join(dir, "key")
	writeKey(t, keyPath, "second-key")
	cfg := kit.Try(config.Load(map[string]string{"config": "", "server_url": ownURL, "api_key_file": keyPath},
		kit.Only(config.HomeVariable, dir))).Must(t)
	s = New(Config{State: db, Owner: owner, Client: outbox.NewClient(1), Log: slog.New(slog.DiscardHandler),
		Proven: protocol.ProvenServers{Path: filepath.Join(dir, "proven")}})
	s.SetOwn(&cfg)
	return s, keyPath
}

func writeKey(t *testing.T, path, key string) {
	t.Helper()
	kit.Must(t, os.WriteFile(path, []byte(key+"\n"), 0o600))
}

// queue queues a row of a new file for a destination.
func queue(t *testing.T, db *state.DB, id tail.FileID, dest string) {
	t.Helper()
	raw := []byte(`{"line_index":0}`)
	batch := outbox.Batch{To: protocol.Position{Offset: 9, Line: 1}, Entries: 1, Raw: int64(len(raw)), Frame: outbox.NewPacker().Pack(nil, raw)}
	errs, err := db.Commit(t.Context(), []state.Step{{
		Tracked: tail.Tracked{File: tail.File{ID: id, Path: "/p"}, Cursor: tail.Cursor{Offset: 9, Line: 1}},
		Routing: state.Routing{Dest: dest, Decided: true, Stream: outbox.Stream{ID: uint64(id), SessionID: "s"}},
		Batches: []outbox.Batch{batch},
	}})
	kit.Must(t, errors.Join(append(errs, err)...))
}

// A retired server is shown no new key, whatever it is asked.
func TestRetiredServerIsAskedWithItsKey(t *testing.T) {
	s, _ := newServers(t, filepath.Join(t.TempDir(), "state.db"), &testOwner{})
	key, err := s.Reader(ownURL).Key()
	kit.Check(t, err == nil && key == "second-key", "the user's own: %q, %v", key, err)
	kit.Gives(t, "the user's own, spelled differently", "second-key")(s.Reader(ownURL + "//api/conversations").Key())
	key, err = s.Reader(retiredURL).Key()
	kit.Check(t, errors.Is(err, errOtherKey), "a retired one: %q, %v", key, err)
	_, err = s.Reader("no URL").Key()
	kit.Check(t, err != nil, "no error for what is no URL")
}

// A key is not shown while another configuration waits to be read, unless the server took rows with it.
func TestKeyWaitsForTheConfiguration(t *testing.T) {
	owner := &testOwner{pending: true}
	s, _ := newServers(t, filepath.Join(t.TempDir(), "state.db"), owner)
	key, err := s.Reader(ownURL).Key()
	kit.Check(t, errors.Is(err, errNotInForce) && s.keyWithheld.Load(), "key %q, %v", key, err)
	owner.pending = false
	s.RetryWithheldKey()
	key, err = s.Reader(ownURL).Key()
	kit.Check(t, err == nil && key == "second-key" && !s.keyWithheld.Load(), "key %q, %v", key, err)
}

// The key of a project's server comes from the project, anew each time it changes.
func TestProjectKey(t *testing.T) {
	s, ownKey := newServers(t, filepath.Join(t.TempDir(), "state.db"), &testOwner{})
	dir := t.TempDir()
	credentials := project.CredentialsPath(dir)
	kit.Must(t, os.MkdirAll(filepath.Dir(credentials), 0o700))
	writeKey(t, credentials, `{"api_key":"its-key"}`)
	dest := project.DestinationKey(ownURL, dir)
	kit.Gives(t, "key", "its-key")(s.Reader(dest).Key())
	kit.Must(t, s.Open(dest))
	before := s.KeyStamps()
	writeKey(t, credentials, `{"api_key":"its-second-key"}`)
	after := s.KeyStamps()
	writeKey(t, ownKey, "another-key")
	last := s.KeyStamps()
	kit.Check(t, before != after && after != last, "stamps %q, %q, %q", before, after, last)
}

// What waits for a retired server can be dropped. What waits for any other cannot.
func TestDropServer(t *testing.T) {
	s, _ := newServers(t, filepath.Join(t.TempDir(), "state.db"), &testOwner{trusted: "/trusted"})
	for i, dest := range []string{ownURL, retiredURL, project.DestinationKey(retiredURL, "/untrusted")} {
		queue(t, s.State, tail.FileID(i+1), dest)
	}
	list := s.RetiredServers(s.State.Outbox.Usage())
	kit.Equal(t, "retired", list, []control.RetiredServer{{URL: retiredURL, Batches: 2, Entries: 2}})
	for url, code := range map[string]string{ownURL: control.CodeUsage, "no URL": control.CodeConfig, "http://x": control.CodeUsage} {
		_, err := s.DropServer(t.Context(), control.DropServerRequest{Server: url})
		known, ok := errors.AsType[*control.Error](err)
		kit.Check(t, ok && known.Code == code, "%s: %v, want %s", url, err, code)
	}
	a, err := s.DropServer(t.Context(), control.DropServerRequest{Server: retiredURL + "/"})
	kit.Check(t, err == nil && a.Rows == 2 && s.State.Outbox.Usage().Batches == 1, "dropped %+v, %v", a, err)
	queue(t, s.State, 9, project.DestinationKey(retiredURL, "/trusted"))
	_, err = s.DropServer(t.Context(), control.DropServerRequest{Server: retiredURL})
	kit.Check(t, err != nil, "what waits for the server of a trusted project was dropped")
}

// A pause outlives a restart and ends when its time is up.
func TestPause(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, _ := newServers(t, path, &testOwner{})
	p := loadPause(t, s)
	_, err := p.Begin(t.Context(), control.PauseRequest{For: "soon"})
	kit.Check(t, err != nil && p.Current() == nil, "paused for a length that is none: %v", err)
	for range 2 {
		kit.Try(p.Begin(t.Context(), control.PauseRequest{For: "1h"})).Must(t)
	}
	err = p.Expire(t.Context())
	kit.Check(t, err == nil && p.Current() != nil, "it is over too early: %v", err)
	s.State.Close()
	s, _ = newServers(t, path, &testOwner{})
	p = loadPause(t, s)
	_, paused := s.ownAndPaused()
	kit.Check(t, paused && p.Current() != nil, "it ended with a restart")
	kit.Try(p.Begin(t.Context(), control.PauseRequest{For: "1ns"})).Must(t)
	err = p.Expire(t.Context())
	kit.Check(t, err == nil && p.Current() == nil, "it is not over: %v", err)
	was, err := p.End(t.Context())
	kit.Check(t, err == nil && !was, "it ended twice: %v", err)
	_, paused = s.ownAndPaused()
	kit.Check(t, !paused, "the servers are still paused")
}

func loadPause(t *testing.T, s *Servers) *Pause {
	t.Helper()
	return kit.Try(LoadPause(t.Context(), s.State, s, s.Log)).Must(t)
}

// Until a server has answered this run, what it announced before holds: a comparison asks it for its digests.
func TestServerIsKnownFromEarlierRuns(t *testing.T) {
	for name, plain := range map[string]bool{"any protocol": false, "the plain protocol is set": true} {
		t.Run(name, func(t *testing.T) {
			s, _ := newServers(t, filepath.Join(t.TempDir(), "state.db"), &testOwner{})
			s.Plain = plain
			dest := project.DestinationKey(ownURL, "")
			queue(t, s.State, 7, dest)
			kit.Must(t, s.Open(dest))
			kit.Check(t, !s.SpeaksExtension(dest) && !s.Takes(dest, outbox.Documents), "known before any answer")
			learned := outbox.Learned{Took: true, Extension: true, Accepts: outbox.Kinds(0).With(outbox.Documents)}
			kit.Must(t, s.State.Outbox.Learn(t.Context(), dest, learned))
			got := s.SpeaksExtension(dest)
			kit.Check(t, got != plain, "it announced the extension: %t", got)
			got = s.Takes(dest, outbox.Documents)
			kit.Check(t, got != plain, "it announced that it takes documents: %t", got)
		})
	}
}
