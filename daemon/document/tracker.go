// Package document tracks the files that are linked to sessions. It finds new versions, queues each for the session's
// server in the order in which it found them, and links and unlinks files for the user, Claude and the viewer. It does
// not know where a session's lines go, or how batches are sent.
package document

import (
	"cmp"
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

// sessionDocuments holds a session's documents, including unlinked ones.
type sessionDocuments struct {
	documents map[string]trackedDocument // by path
	active    time.Time                  // when something last happened in the session
	due       time.Time                  // when the documents are checked next
	cost      time.Duration              // of a check that finds nothing
	requested bool                       // the state has requests of the session's Claude
	retry     bool                       // a request failed; it is tried again when due
	edits     []edit                     // of files that may be documents
}

// edit is a change of a file by one of Claude's tools.
type edit struct {
	path string
	line int64
}

// urgent reports whether a request or an edit waits.
func (s *sessionDocuments) urgent() bool { return s.requested || len(s.edits) > 0 }

// needsChecks reports whether the session has anything to check or to send.
func (s *sessionDocuments) needsChecks() bool {
	for _, d := range s.documents {
		if d.Linked || d.Dest == "" {
			return true
		}
	}
	return s.retry
}

// unsent reports whether a change is not queued for any server yet.
func (s *sessionDocuments) unsent() bool {
	for _, d := range s.documents {
		if d.Dest == "" {
			return true
		}
	}
	return false
}

// trackedDocument is a document, and what is known of its file beyond the last version.
type trackedDocument struct {
	projection.Document
	newStamp      projection.Stamp // at the previous check, if it is not the version's
	changingSince time.Time        // when the file was first seen to differ from the version
	missing       bool             // it did not exist at the previous check
	unproven      bool             // its bytes may have changed although the stamp has not
	problem       string           // why it cannot be read or sent now
	failures      int              // how often its newest version could not be sent
	placed        bool             // this daemon has seen that the working directory is the one it was linked in
}

// compare orders documents by when they were linked.
func (d *trackedDocument) compare(other *trackedDocument) int {
	return cmp.Or(cmp.Compare(d.AddedAt, other.AddedAt), cmp.Compare(d.Path, other.Path))
}

// newVersion makes a content the next version.
func (d *trackedDocument) newVersion(c *content, by string) {
	d.Version++
	d.ChangedAt, d.By = time.Now().UnixMilli(), by
	d.Size, d.SHA256, d.TooLarge, d.Deleted = c.Size, c.SHA256, c.TooLarge, false
	d.setStamp(c)
}

// setStamp notes which state of the file the version was read from.
func (d *trackedDocument) setStamp(c *content) {
	d.Stat, d.unproven = c.Stamp, c.Torn || !settled(c.Stamp, time.Now())
	d.newStamp, d.changingSince, d.missing, d.problem = projection.Stamp{}, time.Time{}, false, ""
}

// elsewhere reports whether the working directory is not the folder in which the document was linked. The folder's
// device may have another number after a restart.
func (d *trackedDocument) elsewhere(now projection.Folder) bool {
	if now.Inode == 0 || d.Folder.Inode != 0 && (d.Folder.Inode != now.Inode || d.placed &&
		d.Folder.Device != now.Device) {
		return now.Inode != 0
	}
	d.Folder, d.placed = now, true
	return false
}
