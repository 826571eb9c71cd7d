package delivery

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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
	db, err := state.Open(t.Context(), state.Options{Path: path, HeadRoom: 1})
	kit.Must(t, err)
	t.Cleanup(func() { db.Close() })
	dir := t.TempDir()
	keyPath = filepath.Join(dir, "key")
	writeKey(t, keyPath, "second-key")
	cfg, err := config.Load(map[string]string{"config": "", "server_url": ownURL, "api_key_file": keyPath},
		func(name string) (string, bool) {
			if name == config.HomeVariable {
				return dir, true
			}
			return "", false
		})
	kit.Must(t, err)
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
	if key, err := s.Reader(ownURL).Key(); err != nil || key != "second-key" {
		t.Errorf("the user's own: %q, %v", key, err)
	}
	if key, err := s.Reader(ownURL + "//api/conversations").Key(); err != nil || key != "second-key" {
		t.Errorf("the user's own, spelled differently: %q, %v", key, err)
	}
	if key, err := s.Reader(retiredURL).Key(); !errors.Is(err, errOtherKey) {
		t.Errorf("a retired one: %q, %v", key, err)
	}
	if _, err := s.Reader("no URL").Key(); err == nil {
		t.Error("no error for what is no URL")
	}
}

// A key is not shown while another configuration waits to be read, unless the server took rows with it.
func TestKeyWaitsForTheConfiguration(t *testing.T) {
	owner := &testOwner{pending: true}
	s, _ := newServers(t, filepath.Join(t.TempDir(), "state.db"), owner)
	if key, err := s.Reader(ownURL).Key(); !errors.Is(err, errNotInForce) || !s.keyWithheld.Load() {
		t.Errorf("key %q, %v", key, err)
	}
	owner.pending = false
	s.RetryWithheldKey()
	if key, err := s.Reader(ownURL).Key(); err != nil || key != "second-key" || s.keyWithheld.Load() {
		t.Errorf("key %q, %v", key, err)
	}
}

// The key of a project's server comes from the project, anew each time it changes.
func TestProjectKey(t *testing.T) {
	s, ownKey := newServers(t, filepath.Join(t.TempDir(), "state.db"), &testOwner{})
	dir := t.TempDir()
	credentials := project.CredentialsPath(dir)
	kit.Must(t, os.MkdirAll(filepath.Dir(credentials), 0o700))
	writeKey(t, credentials, `{"api_key":"its-key"}`)
	dest := project.DestinationKey(ownURL, dir)
	if key, err := s.Reader(dest).Key(); err != nil || key != "its-key" {
		t.Errorf("key %q, %v", key, err)
	}
	kit.Must(t, s.Open(dest))
	before := s.KeyStamps()
	writeKey(t, credentials, `{"api_key":"its-second-key"}`)
	after := s.KeyStamps()
	writeKey(t, ownKey, "another-key")
	if last := s.KeyStamps(); before == after || after == last {
		t.Errorf("stamps %q, %q, %q", before, after, last)
	}
}

// What waits for a retired server can be dropped. What waits for any other cannot.
func TestDropServer(t *testing.T) {
	s, _ := newServers(t, filepath.Join(t.TempDir(), "state.db"), &testOwner{trusted: "/trusted"})
	for i, dest := range []string{ownURL, retiredURL, project.DestinationKey(retiredURL, "/untrusted")} {
		queue(t, s.State, tail.FileID(i+1), dest)
	}
	list := s.RetiredServers(s.State.Outbox.Usage())
	if want := []control.RetiredServer{{URL: retiredURL, Batches: 2, Entries: 2}}; !slices.Equal(list, want) {
		t.Errorf("retired %+v, want %+v", list, want)
	}
	for url, code := range map[string]string{ownURL: control.CodeUsage, "no URL": control.CodeConfig, "http://x": control.CodeUsage} {
		_, err := s.DropServer(t.Context(), control.DropServerRequest{Server: url})
		if known, ok := errors.AsType[*control.Error](err); !ok || known.Code != code {
			t.Errorf("%s: %v, want %s", url, err, code)
		}
	}
	a, err := s.DropServer(t.Context(), control.DropServerRequest{Server: retiredURL + "/"})
	if err != nil || a.Rows != 2 || s.State.Outbox.Usage().Batches != 1 {
		t.Errorf("dropped %+v, %v", a, err)
	}
	queue(t, s.State, 9, project.DestinationKey(retiredURL, "/trusted"))
	if _, err := s.DropServer(t.Context(), control.DropServerRequest{Server: retiredURL}); err == nil {
		t.Error("what waits for the server of a trusted project was dropped")
	}
}

// A pause outlives a restart and ends when its time is up.
func TestPause(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, _ := newServers(t, path, &testOwner{})
	p := loadPause(t, s)
	if _, err := p.Begin(t.Context(), control.PauseRequest{For: "soon"}); err == nil || p.Current() != nil {
		t.Errorf("paused for a length that is none: %v", err)
	}
	for range 2 {
		if _, err := p.Begin(t.Context(), control.PauseRequest{For: "1h"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Expire(t.Context()); err != nil || p.Current() == nil {
		t.Errorf("it is over too early: %v", err)
	}
	s.State.Close()
	s, _ = newServers(t, path, &testOwner{})
	p = loadPause(t, s)
	if _, paused := s.ownAndPaused(); !paused || p.Current() == nil {
		t.Error("it ended with a restart")
	}
	if _, err := p.Begin(t.Context(), control.PauseRequest{For: "1ns"}); err != nil {
		t.Fatal(err)
	}
	if err := p.Expire(t.Context()); err != nil || p.Current() != nil {
		t.Errorf("it is not over: %v", err)
	}
	if was, err := p.End(t.Context()); err != nil || was {
		t.Errorf("it ended twice: %v", err)
	}
	if _, paused := s.ownAndPaused(); paused {
		t.Error("the servers are still paused")
	}
}

func loadPause(t *testing.T, s *Servers) *Pause {
	t.Helper()
	p, err := LoadPause(t.Context(), s.State, s, s.Log)
	kit.Must(t, err)
	return p
}

// Until a server has answered this run, what it announced to an earlier one holds: a comparison right after the start
// asks it for its digests.
func TestServerIsKnownFromEarlierRuns(t *testing.T) {
	for name, plain := range map[string]bool{"any protocol": false, "the plain protocol is set": true} {
		t.Run(name, func(t *testing.T) {
			s, _ := newServers(t, filepath.Join(t.TempDir(), "state.db"), &testOwner{})
			s.Plain = plain
			dest := project.DestinationKey(ownURL, "")
			queue(t, s.State, 7, dest)
			kit.Must(t, s.Open(dest))
			if s.SpeaksExtension(dest) || s.Takes(dest, outbox.Documents) {
				t.Error("known before any answer")
			}
			learned := outbox.Learned{Took: true, Extension: true, Accepts: outbox.Kinds(0).With(outbox.Documents)}
			kit.Must(t, s.State.Outbox.Learn(t.Context(), dest, learned))
			if got := s.SpeaksExtension(dest); got == plain {
				t.Errorf("it announced the extension: %t", got)
			}
			if got := s.Takes(dest, outbox.Documents); got == plain {
				t.Errorf("it announced that it takes documents: %t", got)
			}
		})
	}
}
