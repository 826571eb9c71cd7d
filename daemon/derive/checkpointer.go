package derive

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/session"
)

// checkpointer is the observer that makes checkpoints, and notices about them. Its fields belong to the current step.
type checkpointer struct {
	projections *projection.DB
	checkpoints []projection.Checkpoint
	notices     []projection.Notice
	err         error
}

var _ Observer = (*checkpointer)(nil)

// NewCheckpointer returns an observer that looks up budgets and earlier checkpoints in projections.
func NewCheckpointer(projections *projection.DB) *checkpointer {
	return &checkpointer{projections: projections}
}

// Begin applies the current budget. Thresholds that are already exceeded under it do not fire.
func (c *checkpointer) Begin(s *FoldStep) {
	c.checkpoints, c.notices, c.err = nil, nil, nil
	s.Session.Budget = budgetOptions(c.projections.Checkpoints.Budgets(), s.File.File.ID)
	if hasCheckpoints(s) {
		s.Detector.BudgetChanged(s.Session)
	}
}

// hasCheckpoints reports whether a transcript can have checkpoints. An agent's cannot: it ends with its task.
func hasCheckpoints(s *FoldStep) bool { return s.File.File.Kind == tail.Main }

// Event makes a checkpoint if a threshold is exceeded or the session is compacted.
func (c *checkpointer) Event(s *FoldStep, e *session.Event, watched bool) {
	if !hasCheckpoints(s) {
		return
	}
	found, due := s.Detector.Add(e, s.Session, watched)
	if !due {
		return
	}
	p := newCheckpoint(s, found)
	p.ID = automaticID(p.Session, &found)
	_, known, err := c.projections.Checkpoints.Checkpoint(context.Background(), p.ID)
	c.err = cmp.Or(c.err, err)
	if known || err != nil {
		return // known: the line is folded again
	}
	c.checkpoints = append(c.checkpoints, p)
	if watched {
		c.notices = append(c.notices, projection.Notice{
			Session: p.Session, Kind: p.Trigger, Checkpoint: p.ID, Tokens: p.Tokens, Budget: p.Budget,
		})
	}
}

// End adds the step's checkpoints and notices to its effects.
func (c *checkpointer) End(s *FoldStep) error {
	if c.err != nil {
		return c.err
	}
	s.Effects.Notices = append(s.Effects.Notices, c.notices...)
	return addToEffects(s, c.checkpoints)
}

// newCheckpoint makes a checkpoint without an id.
func newCheckpoint(s *FoldStep, m session.Checkpoint) projection.Checkpoint {
	c := projection.Checkpoint{
		Session: s.Facts.Stream.SessionID, Trigger: string(m.Trigger), Tokens: m.Tokens, Budget: m.Limit,
		ContextHash: m.ContextHash, Summary: m.Summary, ActiveFiles: m.ActiveFiles, At: m.Time.UTC(),
		Generation: s.File.Cursor.Generation, Line: m.Line, Model: m.Model, Automatic: m.Automatic,
	}
	if y := c.At.Year(); y < 1971 || y > 9999 { // no time, or one that rows and servers cannot store
		c.At = time.Now().UTC().Truncate(time.Millisecond)
	}
	return c
}

// automaticID returns the id of an automatic checkpoint. It is the same in every reading and in every generation of the
// file. The line number matters only for a record without a uuid.
func automaticID(session string, m *session.Checkpoint) string {
	at := m.UUID
	if at == "" {
		at = strconv.FormatInt(m.Line, 10)
	}
	sum := sha256.Sum256([]byte(session + "\x00" + string(m.Trigger) + "\x00" + at))
	return "cp-" + hex.EncodeToString(sum[:6])
}
