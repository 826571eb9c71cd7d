package derive

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/redact"
	"github.com/ccship/ccship/transcript/session"
)

const (
	sessionA = "0a0a0a0a-0000-4000-8000-000000000001"
	sessionB = "0b0b0b0b-0000-4000-8000-000000000002"
	sessionC = "0c0c0c0c-0000-4000-8000-000000000003"
)

// chat is short for the conversations of tests.
type chat = kit.Chat

// harness is a deriver behind a real tailer and a real state, on real files. Nothing is delivered to a server.
type harness struct {
	t         *testing.T
	root      string // projects folder
	statePath string
	fault     func(step string) error // of the state
	lineCap   int64
	kept      int // messages

	db          *state.DB
	projections *projection.DB
	tailer      *tail.Tailer
	deriver     *Deriver
	copies      CopyDetector
	redelivered bool // what is committed was committed before
	stop        func()
}

// patience is how long anything may take on the slowest machine.
const patience = 2 * time.Minute

func newHarness(t *testing.T) *harness {
	t.Helper()
	dir := t.TempDir()
	h := &harness{t: t, root: filepath.Join(dir, "projects"), statePath: filepath.Join(dir, "state.db"), lineCap: 16 << 20}
	kit.Must(t, os.MkdirAll(h.root, 0o700))
	return h
}

// policy excludes nothing.
type policy struct{ kept int }

func (policy) Excluded(*tail.Tracked, *state.Routing) bool { return false }
func (policy) Masker(*state.Routing) *redact.Masker        { return nil }
func (p policy) MessageLimits() MessageLimits              { return MessageLimits{Kept: p.kept} }

// noFiles is a tailer that knows nothing.
type noFiles struct{}

func (noFiles) File(tail.FileID) (tail.Tracked, bool) { return tail.Tracked{}, false }
func (noFiles) Stats() tail.Stats                     { return tail.Stats{} }

// open opens the state, until stop.
func (h *harness) open() *projection.DB {
	h.t.Helper()
	projections := kit.Try(projection.Open(h.t.Context(), state.Options{Path: h.statePath, Fault: h.fault})).Must(h.t)
	h.db, h.projections = projections.State, projections
	h.stop = sync.OnceFunc(func() { kit.Should(h.t, projections.State.Close()) })
	h.t.Cleanup(h.stop)
	return projections
}

// alone returns a deriver on the opened state whose Run is not called.
func (h *harness) alone(observers ...Observer) *Deriver {
	return New(Config{LineCap: h.lineCap, Log: slog.New(slog.DiscardHandler)}, h.projections, noFiles{}, policy{h.kept}, observers...)
}

// start runs everything, until stop.
func (h *harness) start(observers ...Observer) {
	h.t.Helper()
	projections := h.open()
	db := projections.State
	closeState := h.stop
	h.tailer = tail.New(tail.Config{Roots: []tail.Root{{Dir: h.root}}, Cap: h.lineCap, Log: slog.New(slog.DiscardHandler)}, db.Files, h)
	h.deriver = New(Config{LineCap: h.lineCap, Log: slog.New(slog.DiscardHandler)}, projections, h.tailer, policy{h.kept}, observers...)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, run := range []func(context.Context) error{h.tailer.Run, h.deriver.Run, db.Run} {
		wg.Go(func() {
			err := run(ctx)
			kit.Check(h.t, err == nil || errors.Is(err, context.Canceled), "%v", err)
		})
	}
	h.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		closeState()
	})
	h.t.Cleanup(h.stop)
}

// HasSpace is the tailer's: there is always space.
func (h *harness) HasSpace(bool) bool { return true }

// Deliver commits chunks without batches, as a relay does.
func (h *harness) Deliver(ctx context.Context, chunks []tail.Chunk) ([]tail.Result, error) {
	steps := make([]state.Step, len(chunks))
	compactions := make([]bool, len(chunks))
	for i := range chunks {
		c := &chunks[i]
		facts, _, err := h.db.Files.Routing(ctx, c.File.ID)
		if err != nil {
			return nil, err
		}
		facts.Decided = true
		facts.Stream.ID, facts.Stream.SessionID = uint64(c.File.ID), c.File.Name
		h.copies.Watch(&facts, c, h.redelivered)
		if c.From != c.Prev {
			facts.RewoundTo = c.From.Line
		}
		compactions[i] = bytes.Contains(c.Lines, []byte("compact_boundary"))
		facts.Compacted = facts.Compacted || compactions[i]
		steps[i] = state.Step{Prev: c.Prev, From: c.From, Tracked: c.Tracked, Marks: c.Marks, Routing: facts}
	}
	errs, err := h.db.Commit(ctx, steps)
	if err != nil {
		return nil, err
	}
	results := make([]tail.Result, len(chunks))
	for i, err := range errs {
		if results[i].Err = err; err == nil {
			h.deriver.Committed(&chunks[i], &route.Decision{Facts: steps[i].Routing, Compaction: compactions[i]})
		}
	}
	return results, nil
}

func (h *harness) startAndSync(observers ...Observer) {
	h.t.Helper()
	h.start(observers...)
	h.sync()
}

// sync returns when everything on disk is committed and folded.
func (h *harness) sync() {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	kit.Must(h.t, h.tailer.Sync(ctx))
	kit.Must(h.t, h.deriver.Wait(ctx))
}

func (h *harness) path(session string) string {
	return filepath.Join(h.root, "-home-kim-shop", session+".jsonl")
}

// write appends text to a session's transcript.
func (h *harness) write(session, text string) {
	h.t.Helper()
	kit.Must(h.t, os.MkdirAll(filepath.Dir(h.path(session)), 0o700))
	kit.AppendTranscript(h.t, h.path(session), text)
}

// send writes and syncs.
func (h *harness) send(session, text string) {
	h.t.Helper()
	h.write(session, text)
	h.sync()
}

// rewrite replaces a transcript's content in place.
func (h *harness) rewrite(session, text string) {
	h.t.Helper()
	kit.Must(h.t, os.WriteFile(h.path(session), []byte(text), 0o600))
}

// delivered commits transcripts before a test folds them itself: the state is open then, and nothing runs.
func (h *harness) delivered(transcripts map[string]string) *projection.DB {
	h.t.Helper()
	for session, text := range transcripts {
		h.write(session, text)
	}
	h.start()
	h.sync()
	h.stop()
	return h.open()
}

// id returns the file of a session's transcript.
func (h *harness) id(session string) tail.FileID {
	h.t.Helper()
	facts := kit.Try(h.db.Files.Routings(h.t.Context())).Must(h.t)
	for id, f := range facts {
		if f.Stream.SessionID == session {
			return id
		}
	}
	h.t.Fatalf("%s is not in the state", session)
	return 0
}

// messages asks for a session's message log.
func (h *harness) messages(session string) control.Messages {
	h.t.Helper()
	return kit.Try(h.deriver.Messages(h.t.Context(), h.id(session), session, control.Page{})).Must(h.t)
}

// emptyState removes what buckets of the closed state hold.
func (h *harness) emptyState(buckets ...string) {
	h.t.Helper()
	db, err := bbolt.Open(h.statePath, 0o600, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	kit.Must(h.t, err)
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			if err := tx.DeleteBucket([]byte(name)); err != nil {
				return err
			}
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		return kv.SumRows(tx)
	})
	kit.Must(h.t, errors.Join(err, db.Close()))
}

// until waits for something to be so.
func (h *harness) until(what string, so func() bool) {
	h.t.Helper()
	kit.Eventually(h.t, what, 10*time.Second, so)
}

// recorder is an observer that records prompts and answers, and whether they were watched.
type recorder struct {
	mu   sync.Mutex
	seen []string      // "one", or "one!" when it was watched; guarded by mu
	fail error         // of End; guarded by mu
	gate chan struct{} // End waits until it is closed; nil: it does not
}

func (*recorder) Begin(*FoldStep) {}

func (r *recorder) Event(_ *FoldStep, e *session.Event, watched bool) {
	if e.Kind != session.PromptEvent && e.Kind != session.AnswerEvent {
		return
	}
	text := e.Text
	if watched {
		text += "!"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, text)
}

func (r *recorder) End(*FoldStep) error {
	if r.gate != nil {
		<-r.gate
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fail
}

// last returns what was recorded last.
func (r *recorder) last() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) == 0 {
		return ""
	}
	return r.seen[len(r.seen)-1]
}

// take returns what was recorded, and forgets it.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

func (h *harness) expect(r *recorder, what string, want ...string) {
	h.t.Helper()
	diff := cmp.Diff(want, r.take())
	kit.Check(h.t, diff == "", "%s (-want +got):\n%s", what, diff)
}
