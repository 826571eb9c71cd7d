// Package document tracks the files that are linked to sessions. It finds new versions, queues each for the session's
// server in the order in which it found them, and links and unlinks files for the user, Claude and the viewer. It does
// not know where a session's lines go, or how batches are sent.
package document

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/redact"
)

// Locator finds sessions and folders. Its methods must be safe for concurrent use.
type Locator interface {
	// Locate finds a session by the full name of its stream. The error is a *control.Error if the session is unknown or
	// forgotten.
	Locate(ctx context.Context, session string) (Location, error)
	// Excluded returns why files in a folder must not be sent; "" if they may.
	Excluded(dir string) string
}

// Introductions are those of sessions: see derive.Introductions. Its method must be safe for concurrent use.
type Introductions interface {
	Get(ctx context.Context, session string) (projection.Introduction, bool, error)
}

// Settings is the configuration in force. Its method must be safe for concurrent use.
type Settings interface {
	// Config returns another pointer after each change.
	Config() *config.Config
}

// Deps is what a Tracker needs. All fields are required.
type Deps struct {
	Projections   *projection.DB
	Locator       Locator
	Introductions Introductions
	Settings      Settings
	Guard         *Guard
	Masking       Masking
	Log           *slog.Logger
}

// Masking decides where secrets are masked. Its method must be safe for concurrent use.
type Masking interface {
	// For returns the masker for texts of a project, given its folder, on their way to a server; nil: no masking.
	For(dest, cwd string) *redact.Masker
}

// Tracker tracks the documents of all sessions. It reads a document when Claude reports a change, and polls for changes
// by others. Links belong to one session: a fork begins without any. The exported methods are safe for concurrent use.
type Tracker struct {
	Deps
	answers *answers

	bell        outbox.Bell
	started     time.Time
	lastWritten atomic.Int64 // when a watched transcript was last written, in Unix milliseconds

	work     sync.Mutex     // held from the check of a file until its result is durable; taken before mu
	packer   *outbox.Packer // guarded by work
	failing  bool           // the last change could not be stored; guarded by work
	policies policyCache    // guarded by work

	mu             sync.Mutex
	sessions       map[string]*sessionDocuments // those with documents or requests; guarded by mu
	activeInterval time.Duration                // the shortest pause between checks of an active session; guarded by mu
	busy           bool                         // Run is checking a session; guarded by mu
}

// Load returns a tracker with the links in the state. Run starts it.
func Load(ctx context.Context, d Deps) (*Tracker, error) {
	t := newTracker(d)
	var err error
	if t.answers, err = loadAnswers(ctx, d.Projections.State); err != nil {
		return nil, err
	}
	if err := t.load(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

func newTracker(d Deps) *Tracker {
	return &Tracker{
		Deps: d, bell: outbox.NewBell(), started: time.Now(), packer: outbox.NewPacker(),
		sessions: map[string]*sessionDocuments{}, activeInterval: shortInterval,
	}
}

func (t *Tracker) load(ctx context.Context) error {
	err := t.Projections.Documents.Each(ctx, func(d projection.Document) {
		unproven := !settled(d.Stat, time.UnixMilli(d.ChangedAt))
		t.session(d.Session).documents[d.Path] = trackedDocument{Document: d, unproven: unproven}
	}, func(session string) { t.session(session).requested = true })
	if err != nil {
		return fmt.Errorf("load documents: %w", err)
	}
	return nil
}

// session returns a session's documents, and begins to track it. The caller holds mu, or t is not shared yet.
func (t *Tracker) session(name string) *sessionDocuments {
	s := t.sessions[name]
	if s == nil {
		s = &sessionDocuments{documents: map[string]trackedDocument{}}
		t.sessions[name] = s
	}
	return s
}

// list copies a session's documents in the order in which they were linked. linked: only those that still are.
func (t *Tracker) list(session string, linked bool) (list []trackedDocument) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.sessions[session]; s != nil {
		for _, d := range s.documents {
			if d.Linked || !linked {
				list = append(list, d)
			}
		}
	}
	slices.SortFunc(list, func(a, b trackedDocument) int { return a.compare(&b) })
	return list
}

// Linked returns the paths of a session's documents in the order in which they were linked.
func (t *Tracker) Linked(session string) (paths []string) {
	for _, d := range t.list(session, true) {
		paths = append(paths, d.Path)
	}
	return paths
}

// put stores what is known about a document in memory, unless its session was forgotten meanwhile. first: the document
// may be the session's first.
func (t *Tracker) put(d trackedDocument, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if first {
		t.session(d.Session)
	}
	if s := t.sessions[d.Session]; s != nil {
		if old := s.documents[d.Path]; old.failures != d.failures { // NotSent was called meanwhile
			d.failures, d.Dest = old.failures, ""
		}
		s.documents[d.Path] = d
	}
}

// Forget removes all documents of a session, and its introduction, from memory and from the state.
func (t *Tracker) Forget(ctx context.Context, session string) error {
	t.work.Lock()
	defer t.work.Unlock()
	names := []string{session}
	t.mu.Lock()
	for name := range t.sessions {
		if name != session && slices.Contains(transcript.ForgetNames(name), session) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		delete(t.sessions, name)
	}
	t.mu.Unlock()
	for _, name := range names {
		if err := t.Projections.Documents.Drop(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// Resend queues all documents again for a server that may have dropped what it got before it accepted documents.
func (t *Tracker) Resend(ctx context.Context, dest string) error {
	t.work.Lock()
	defer t.work.Unlock()
	t.mu.Lock()
	var again []trackedDocument
	for _, s := range t.sessions {
		for _, d := range s.documents {
			if d.Linked && d.Dest == dest {
				d.Dest = ""
				again = append(again, d)
			}
		}
	}
	t.mu.Unlock()
	effects := projection.Derivation{}
	for _, d := range again {
		effects.Documents = append(effects.Documents, d.Document)
	}
	if _, err := t.Projections.Commit(ctx, []projection.Derivation{effects}); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range again {
		if s := t.sessions[d.Session]; s != nil {
			s.documents[d.Path], s.due = d, time.Time{}
		}
	}
	t.bell.Ring()
	return nil
}

// Recheck makes the tracker read every document again, even if the file did not change. A document that is masked
// differently now becomes a new version.
func (t *Tracker) Recheck() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.sessions {
		for path, d := range s.documents {
			if d.Linked && !d.Deleted {
				d.unproven = true
				s.documents[path], s.due = d, time.Time{}
			}
		}
	}
	t.bell.Ring()
}

// NotSent notes that a document's newest version could not be sent. The file is checked again soon.
func (t *Tracker) NotSent(m projection.MissedDocument) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[m.Session]
	if s == nil {
		return
	}
	d, known := s.documents[m.Path]
	if !known {
		return
	}
	d.failures++
	d.Dest = ""
	s.documents[m.Path] = d
	if soon := time.Now().Add(shortInterval); s.due.After(soon) {
		s.due = soon
	}
	t.bell.Ring()
}
