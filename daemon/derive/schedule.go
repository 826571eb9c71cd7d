package derive

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

const (
	maxFailures = 6                     // in a row; then a transcript is left alone until it changes
	firstRetry  = 50 * time.Millisecond // doubled after each failure
)

// schedule decides which transcript is folded next. It is safe for concurrent use.
type schedule struct {
	mu       sync.Mutex
	begun    bool                     // what an earlier daemon left is in it; guarded by mu
	live     map[tail.FileID]struct{} // with watched lines that are not folded; guarded by mu
	backfill map[tail.FileID]struct{} // with a compaction, from an import; guarded by mu
	folding  bool                     // one of them is being folded; guarded by mu
	unsaved  int                      // transcripts with effects that are not saved; guarded by mu
	failed   map[tail.FileID]failure  // guarded by mu
}

// failure is a transcript that could not be folded.
type failure struct {
	times   int       // in a row
	retryAt time.Time // not before
}

// add schedules transcripts.
func (s *schedule) add(id tail.FileID, backfill bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(id, backfill)
}

func (s *schedule) put(id tail.FileID, backfill bool) {
	if backfill {
		s.backfill[id] = struct{}{}
	} else {
		s.live[id] = struct{}{}
	}
}

// begin says that what an earlier daemon left to do is scheduled.
func (s *schedule) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = true
}

// remove takes a transcript off the schedule.
func (s *schedule) remove(id tail.FileID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, id)
	delete(s.backfill, id)
}

// nextLive takes a transcript with watched lines off the schedule. folded must be called for it.
func (s *schedule) nextLive() (tail.FileID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next(s.live)
}

// nextBackfill is nextLive for transcripts that were imported.
func (s *schedule) nextBackfill() (tail.FileID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next(s.backfill)
}

// next takes a transcript from a list. The caller holds mu.
func (s *schedule) next(list map[tail.FileID]struct{}) (tail.FileID, bool) {
	now := time.Now()
	for id := range list {
		if f, failed := s.failed[id]; failed && now.Before(f.retryAt) {
			continue
		}
		delete(list, id)
		s.folding = true
		return id, true
	}
	return 0, false
}

// folded ends the folding of a transcript that next returned. more says that there are lines left.
func (s *schedule) folded(id tail.FileID, backfill, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if more {
		s.put(id, backfill)
	}
	s.folding = false
}

// succeed forgets the failures of a transcript.
func (s *schedule) succeed(id tail.FileID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.failed, id)
}

// fail counts a failure, and reports whether the transcript is to be tried again.
func (s *schedule) fail(id tail.FileID) (retry bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.failed[id]
	if f.times++; f.times >= maxFailures {
		delete(s.failed, id)
		return false
	}
	f.retryAt = time.Now().Add(firstRetry << f.times)
	s.failed[id] = f
	return true
}

// addUnsaved counts the transcripts with effects that are not saved.
func (s *schedule) addUnsaved(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsaved += n
}

// waiting returns how long there is nothing to fold; at most longest.
func (s *schedule) waiting(now time.Time, longest time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, f := range s.failed {
		if _, scheduled := s.live[id]; scheduled {
			longest = min(longest, max(time.Millisecond, f.retryAt.Sub(now)))
		}
	}
	if len(s.backfill) > 0 {
		longest = min(longest, time.Second)
	}
	return longest
}

// hasBackfill reports whether imported transcripts are scheduled.
func (s *schedule) hasBackfill() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.backfill) > 0
}

func (s *schedule) caughtUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun && len(s.live)+len(s.backfill)+s.unsaved == 0 && !s.folding
}

// sessions finds transcripts. Its methods must be safe for concurrent use.
type sessions interface {
	// StreamID returns the file of a session's main transcript; false if there is none yet.
	StreamID(session string) (tail.FileID, bool)
	// Forgotten reports whether the user had a session forgotten.
	Forgotten(session string) bool
}

// documents are the documents linked to sessions. Its method must be safe for concurrent use.
type documents interface {
	// Linked returns the paths of a session's documents in the order in which they were linked.
	Linked(session string) []string
}

// settings is the configuration in force, which may change at any time. Its method must be safe for concurrent use.
type settings interface {
	// Locale is the language of texts: "en" or "ko".
	Locale() string
}

// Deps is what an Inbox needs. All fields are required.
type Deps struct {
	Projections   *projection.DB
	Deriver       *Deriver // answers the titles of sessions
	Introductions *Introductions
	Notices       *notices
	Sessions      sessions
	Documents     documents
	Settings      settings
	Log           *slog.Logger
}

// Inbox answers hooks. Its methods are safe for concurrent use.
type Inbox struct {
	deps    Deps
	notices *notices
}

// NewInbox returns an inbox. Run starts it.
func NewInbox(d Deps) *Inbox { return &Inbox{deps: d, notices: d.Notices} }

// Run makes durable what hooks have passed on, until ctx is done.
func (b *Inbox) Run(ctx context.Context) error { return b.notices.run(ctx) }

// Forget drops what is in memory for a session. It does not touch the state.
func (b *Inbox) Forget(session string) {
	b.notices.forget(session)
	b.deps.Introductions.forget(session)
}

// Pending returns what a session's Claude is to be shown now: the introduction if the session's start missed it, and
// notices. A request with a receipt confirms that an earlier answer was printed.
func (b *Inbox) Pending(ctx context.Context, req control.PendingRequest) (control.Pending, error) {
	a := control.Pending{SchemaVersion: control.SchemaVersion}
	if req.Receipt != "" {
		n, known := b.notices.confirm(ctx, req.Receipt)
		if !known {
			return a, control.NewError(control.CodeNotFound, "nothing waits for this receipt",
				"the daemon was started again meanwhile: the text goes to the next hook as well")
		}
		b.deps.Log.Debug("a hook has printed its text", "session", req.Session, "notices", n, "hook", req.Event)
		return a, nil
	}
	var introduction string
	var linked []string
	if req.Confirm { // a hook that does not confirm would get it every time
		introduction, linked = b.missed(ctx, req)
	}
	if req.Tool != "" && introduction == "" && !b.notices.any(req.Session) {
		b.notices.follow.await(ctx, req.Session, req.Tool)
	}
	l, receipt := b.notices.lend(req.Session, introduction != "", func(*projection.Notice) bool { return true })
	if !l.init {
		introduction, linked = "", nil
	}
	a.Text, a.Notices = noticeText(b.deps.Settings.Locale(), without(l.list, linked)), len(l.list)
	a.Text = strings.Trim(introduction+"\n"+a.Text, "\n")
	if !req.Confirm {
		b.notices.confirm(ctx, receipt)
		return a, nil
	}
	a.Receipt = receipt
	return a, nil
}

// missed returns the introduction of a session whose Claude was not shown it, and the documents in it; "" if it was
// shown.
func (b *Inbox) missed(ctx context.Context, req control.PendingRequest) (text string, linked []string) {
	if !transcript.ValidSession(req.Session) {
		return "", nil
	}
	session := transcript.MainSession(req.Session, "")
	if b.deps.Sessions.Forgotten(session) || !b.deps.Introductions.missing(ctx, session) {
		return "", nil
	}
	text, linked, err := b.introduction(ctx, session, control.InitQuery{Cwd: req.Cwd})
	if err != nil {
		return "", nil // the working directory is not known yet
	}
	return text, linked
}

// named reports whether a list of linked documents says all that a notice does.
func named(p *projection.Notice, linked []string) bool {
	return p.Kind == projection.NoticeDocument && p.Reason == "" && slices.Contains(linked, p.Path)
}

// without leaves out the notices of documents that are named already.
func without(list []projection.Notice, linked []string) (left []projection.Notice) {
	for _, p := range list {
		if !named(&p, linked) {
			left = append(left, p)
		}
	}
	return left
}

const (
	maxResent = 1000 // checkpoints of a transcript: the state keeps no more
	batchSize = 100  // checkpoints in a batch that is sent again
)

// addToEffects stores checkpoints, and sends them to the server of the session's lines.
func addToEffects(s *FoldStep, list []projection.Checkpoint) error {
	if len(list) == 0 {
		return nil
	}
	items, err := encode(list)
	if err != nil {
		return err
	}
	s.Effects.Checkpoints = append(s.Effects.Checkpoints, list...)
	s.Effects.Batches = append(s.Effects.Batches, s.Packer.Checkpoints(items))
	return nil
}

// Stored are the checkpoints in the state.
type Stored struct{ Projections *projection.DB }

// Batches returns all checkpoints of a transcript, oldest first, for a server that lacks them.
func (s Stored) Batches(ctx context.Context, p *outbox.Packer, id tail.FileID) (batches []outbox.Batch, err error) {
	list, _, err := s.Projections.Checkpoints.List(ctx, id, 0, maxResent)
	if err != nil {
		return nil, err
	}
	slices.Reverse(list)
	for some := range slices.Chunk(list, batchSize) {
		items, err := encode(some)
		if err != nil {
			return nil, err
		}
		batches = append(batches, p.Checkpoints(items))
	}
	return batches, nil
}

// Resend queues the checkpoints of every transcript whose lines go to dest. Call it when a server that accepted lines
// begins to accept checkpoints: checkpoints queued earlier may have been withheld. The server ignores those that it
// already has.
func (s Stored) Resend(ctx context.Context, dest string) error {
	facts, err := s.Projections.State.Files.Routings(ctx)
	if err != nil {
		return fmt.Errorf("resend checkpoints: %w", err)
	}
	packer := outbox.NewPacker()
	for id, f := range facts {
		if f.Dest != dest || f.Stream.Parent != "" {
			continue
		}
		batches, err := s.Batches(ctx, packer, id)
		if err == nil && len(batches) > 0 {
			_, err = s.Projections.Commit(ctx, []projection.Derivation{{File: id, Batches: batches}})
		}
		if err != nil {
			return fmt.Errorf("resend checkpoints: %w", err)
		}
	}
	return nil
}

// item is an element of POST /api/checkpoints.
type item struct {
	control.Checkpoint
	Generation uint32 `json:"generation"`
	Line       int64  `json:"line"`
}

func encode(list []projection.Checkpoint) ([]json.RawMessage, error) {
	items := make([]json.RawMessage, 0, len(list))
	for i := range list {
		c := &list[i]
		text, err := json.Marshal(item{wireCheckpoint(c), c.Generation, c.Line})
		if err != nil {
			return nil, fmt.Errorf("encode checkpoint: %w", err)
		}
		items = append(items, text)
	}
	return items, nil
}
