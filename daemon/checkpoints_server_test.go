package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/derive"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/redact"
)

// sentCheckpoint is a checkpoint as a server got it first.
type sentCheckpoint struct{ id, text string }

// keepCheckpoints has a server take them; once says that none may come twice, else it must be the same then.
func keepCheckpoints(t *testing.T, s *memServer, once bool) (sent func() []sentCheckpoint) {
	t.Helper()
	var kept []sentCheckpoint
	s.attachments.accept = "checkpoints"
	s.checkpoints = func(rw http.ResponseWriter, r *http.Request) {
		var req struct {
			Session     string            `json:"session_id"`
			Checkpoints []json.RawMessage `json:"checkpoints"`
		}
		kit.Should(t, json.Unmarshal(body(r), &req))
		for _, text := range req.Checkpoints {
			var item struct{ ID string }
			kit.Should(t, json.Unmarshal(text, &item))
			i := slices.IndexFunc(kept, func(c sentCheckpoint) bool { return c.id == item.ID })
			kit.Check(t, i < 0 || !once && kept[i].text == string(text), "%s was sent twice", item.ID)
			if i < 0 {
				kept = append(kept, sentCheckpoint{item.ID, string(text)})
			}
		}
		fmt.Fprintf(rw, `{"success":true,"stored":%d}`, len(req.Checkpoints))
	}
	return func() []sentCheckpoint {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Clone(kept)
	}
}

// A server that begins to take checkpoints gets those withheld from it; one in another's place gets all.
func TestCheckpointsForAnotherServer(t *testing.T) {
	w := newFileWorld(t)
	w.watching()
	c := kit.Chat{Session: sessionA}
	w.send(transcriptOf(sessionA), c.Turn(100_000)+c.Turn(140_000))
	w.until("the checkpoint is withheld", func() bool { return len(w.checkpoints(sessionA)) == 1 && w.status().Outbox.Batches == 0 })
	w.server.mu.Lock()
	sent := keepCheckpoints(t, w.server, false)
	w.server.mu.Unlock()
	w.write(transcriptOf(sessionA), c.Turn(155_000))
	w.until("the server has both", func() bool { return len(sent()) == 2 })

	other := newMemServer()
	sent = keepCheckpoints(t, other, false)
	web := httptest.NewServer(other)
	t.Cleanup(web.Close)
	w.set("server_url", strconv.Quote(web.URL))
	w.must(w.client.Reload(t.Context()))
	w.until("the other server has both", func() bool { return len(sent()) == 2 })
	if !strings.Contains(sent()[0].text, "auto_80") {
		t.Errorf("not in order: %v", sent())
	}
	w.write(transcriptOf(sessionA), c.Compaction())
	w.until("the other server has what is new", func() bool { return len(sent()) == 3 })
	kit.Equal(t, "got", w.triggers(sessionA), "auto_80@140000 auto_90@155000 compact@160000")
	w.allPending(sessionA, 3)
}

// A daemon that dies at any step of keeping what it found leaves all of it to the next one, or nothing.
func TestCheckpointsOverACrash(t *testing.T) {
	w := watchingWorld(t)
	c := kit.Chat{Session: sessionA}
	w.send(transcriptOf(sessionA), c.Turn(100_000))
	w.send(transcriptOf(sessionA), c.Turn(140_000)+c.Turn(155_000)+c.Compaction()+c.Turn(20_000))
	w.stop()
	var dying atomic.Pointer[string]
	projections, err := projection.Open(t.Context(), state.Options{Path: filepath.Join(w.cfg.StateDir, "state.db"), HeadRoom: 1, Fault: func(step string) error {
		if s := dying.Load(); s != nil && *s == step {
			return errors.New("killed")
		}
		return nil
	}})
	kit.Must(t, err)
	t.Cleanup(func() { projections.State.Close() })
	file := slices.Collect(maps.Keys(loadFacts(t, projections.State)))
	visit := func() error {
		v := derive.New(derive.Config{LineCap: w.cfg.LineCap, Log: w.cfg.Log}, projections, noFiles{}, noPolicy{}, derive.NewCheckpointer(projections))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		defer func() { cancel(); <-ended }()
		go func() { ended <- v.Run(ctx) }()
		return v.Query(ctx, file[0], func(s *derive.FoldStep) error { s.Save(); return nil })
	}
	for _, step := range []string{"put session", "put messages", "put checkpoint", "put notice", "put batch", "commit"} {
		kit.Must(t, projections.Drop(t.Context(), file))
		dying.Store(&step)
		kit.Check(t, visit() != nil, "%s: it did not fail", step)
		dying.Store(nil)
		if list, _, err := projections.Checkpoints.List(t.Context(), 0, 0, 10); len(list) > 0 || len(projections.Notices.Of(sessionA)) > 0 || err != nil {
			t.Errorf("%s: %d checkpoints of a half, err %v", step, len(list), err)
		}
		for range 2 {
			kit.Must(t, visit())
		}
		list, _, err := projections.Checkpoints.List(t.Context(), 0, 0, 10)
		kit.Check(t, len(list) == 3 && err == nil, "%s: %+v, err %v", step, list, err)
		kit.Equal(t, step+": notices", len(projections.Notices.Of(sessionA)), 3)
	}
}

// noFiles is a tailer that knows nothing.
type noFiles struct{}

func (noFiles) File(tail.FileID) (tail.Tracked, bool) { return tail.Tracked{}, false }
func (noFiles) Stats() tail.Stats                     { return tail.Stats{} }

// noPolicy excludes nothing.
type noPolicy struct{}

func (noPolicy) Excluded(*tail.Tracked, *state.Routing) bool { return false }
func (noPolicy) Masker(*state.Routing) *redact.Masker        { return nil }
func (noPolicy) MessageLimits() (l derive.MessageLimits)     { return l }

// someFile is the only transcript on disk.
type someFile struct{ tail.Tracked }

func (f someFile) File(tail.FileID) (tail.Tracked, bool) { return f.Tracked, true }

// oneServer speaks the extension at an address.
type oneServer struct{ base *url.URL }

func (oneServer) Protocol(string) string { return "ccship" }

func (s oneServer) Reader(string) *remote.Client {
	return &remote.Client{Base: s.base, HTTP: http.DefaultClient, Key: func() (string, error) { return "", nil }}
}

// TestCountOfRejoinedStream: a transcript that rejoined goes on in the epoch in front, and its rewrites are counted there.
func TestCountOfRejoinedStream(t *testing.T) {
	const dest, session, generation, lost = "http://server", "s1", 4, 12
	ctx := t.Context()
	db := kit.Try(state.Open(ctx, state.Options{Path: filepath.Join(t.TempDir(), "state.db"), HeadRoom: 1})).Must(t)
	t.Cleanup(func() { kit.Should(t, db.Close()) })
	file := tail.Tracked{File: tail.File{ID: 1, Path: "/r/p/s1.jsonl", Root: "/r", Name: session, Copy: 1}}
	file.Cursor = tail.Cursor{Offset: 30, Line: 3}
	step := state.Step{Tracked: file, Routing: state.Routing{Dest: dest, Decided: true,
		Stream: outbox.Stream{ID: 1, SessionID: session}}}
	errs, err := db.Commit(ctx, []state.Step{step})
	kit.Require(t, err == nil && errs[0] == nil, "%v %v", errs, err)
	there := tail.Cursor{Offset: 20, Line: 2, Generation: generation}
	kit.Must(t, db.Rejoin(ctx, 1, state.Rejoin{Expect: file.Cursor, Epoch: "front", Cursor: there}))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"drops":[{"session":{"session_id":"s1","machine":"m"},"epoch":"front","generation":`+
			strconv.Itoa(generation)+`,"lines":`+strconv.Itoa(lost)+`}]}`)
	}))
	t.Cleanup(web.Close)
	base := kit.Try(url.Parse(web.URL)).Must(t)
	list := kit.Try(loadRewrites(ctx, db)).Must(t)
	now := time.Now()
	list.list = []rewrite{{File: 1, Session: session, Generation: generation - 1, Next: generation, From: 2, To: 20,
		At: now.Add(-time.Hour)}}
	c := rewriteCounter{Rewrites: list, Files: someFile{file}, Servers: oneServer{base},
		Origin: outbox.Origin{Machine: "m", Epoch: "own"}}
	kit.Must(t, c.Count(ctx, now))
	kit.Check(t, len(list.list) == 1 && list.list[0].Lines == lost,
		"rewrites %+v, want one that took %d lines", list.list, lost)
}

// TestCountGoesOn: a server that cannot be asked holds up no other server's rewrites, and is asked once.
func TestCountGoesOn(t *testing.T) {
	ctx := t.Context()
	db := kit.Try(state.Open(ctx, state.Options{Path: filepath.Join(t.TempDir(), "state.db"), HeadRoom: 1})).Must(t)
	t.Cleanup(func() { kit.Should(t, db.Close()) })
	asked := map[string]int{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.Path]++
		if strings.HasPrefix(r.URL.Path, "/down/") {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, `{"drops":[]}`)
	}))
	t.Cleanup(web.Close)
	list := kit.Try(loadRewrites(ctx, db)).Must(t)
	now := time.Now()
	for id, dest := range []string{"down", "down", "well"} {
		file := tail.File{ID: tail.FileID(id + 1), Path: fmt.Sprintf("/r/p/s%d.jsonl", id), Root: "/r", Name: fmt.Sprint("s", id), Copy: 1}
		errs, err := db.Commit(ctx, []state.Step{{Tracked: tail.Tracked{File: file}, Routing: state.Routing{Dest: dest,
			Decided: true, Stream: outbox.Stream{ID: uint64(file.ID), SessionID: file.Name}}}})
		kit.Require(t, err == nil && errs[0] == nil, "%v %v", errs, err)
		list.list = append(list.list, rewrite{File: file.ID, Session: file.Name, Next: 1, At: now.Add(-time.Hour)})
	}
	c := rewriteCounter{Rewrites: list, Files: someFile{}, Servers: serversBelow{kit.Try(url.Parse(web.URL)).Must(t)}}
	kit.Check(t, c.Count(ctx, now) != nil, "a server is down, and there is no error")
	kit.Equal(t, "requests", asked, map[string]int{"/down/api/drops": 1, "/well/api/drops": 1})
}

// serversBelow speak the extension, each at a path below an address.
type serversBelow struct{ base *url.URL }

func (serversBelow) Protocol(string) string { return "ccship" }

func (s serversBelow) Reader(dest string) *remote.Client {
	return oneServer{s.base.JoinPath(dest)}.Reader(dest)
}
