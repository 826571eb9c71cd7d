package daemon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/ccship/ccship/daemon/derive"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/session"
)

// marker makes checkpoints of what it observes: when a part of the token budget is passed, and at every compaction.
type marker struct {
	db  *state.DB
	due []state.Checkpoint // of the pass under way, as are:
	say []state.Pending
	err error
}

var _ derive.Observer = (*marker)(nil)

// begin takes in what is known of the budget by now: what is passed already because of it is no news.
func (m *marker) Begin(p *derive.FoldStep) {
	m.due, m.say, m.err = nil, nil, nil
	p.Session.Budget = m.budget(p.File.File.ID)
	if hasCheckpoints(p) {
		p.Marks.BudgetChanged(p.Session)
	}
}

// hasCheckpoints says whether a transcript can have checkpoints: an agent's ends with its task.
func hasCheckpoints(p *derive.FoldStep) bool { return p.File.File.Kind == tail.Main }

// budget is what is known of a transcript's budget beside itself.
func (m *marker) budget(id tail.FileID) session.BudgetOptions {
	known := m.db.Budgets()
	o := session.BudgetOptions{Learned: known.Learned, Pins: known.Models}
	if limit := known.Files[id]; limit > 0 {
		o.Pins = map[string]int64{"": limit}
	}
	return o
}

func (m *marker) Event(p *derive.FoldStep, e *session.Event, watched bool) {
	if !hasCheckpoints(p) {
		return
	}
	mark, due := p.Marks.Add(e, p.Session, watched)
	if !due {
		return
	}
	c := checkpointOf(p, mark)
	c.ID = checkpointID(c.Session, &mark)
	_, known, err := m.db.Checkpoint(context.Background(), c.ID)
	if m.err = cmp.Or(m.err, err); known || err != nil {
		return // known: the line is folded once more
	}
	m.due = append(m.due, c)
	if watched {
		m.say = append(m.say, state.Pending{
			Session: c.Session, Kind: c.Trigger, Checkpoint: c.ID, Tokens: c.Tokens, Budget: c.Budget,
		})
	}
}

func (m *marker) End(p *derive.FoldStep) error {
	if m.err != nil {
		return m.err
	}
	p.Effects.Pending = append(p.Effects.Pending, m.say...)
	return addCheckpoints(p, m.due)
}

func checkpointOf(p *derive.FoldStep, m session.Checkpoint) state.Checkpoint {
	c := state.Checkpoint{
		Session: p.Facts.Stream.SessionID, Trigger: string(m.Trigger), Tokens: m.Tokens, Budget: m.Limit,
		ContextHash: m.ContextHash, Summary: m.Summary, ActiveFiles: m.ActiveFiles, At: m.Time.UTC(),
		Generation: p.File.Cursor.Generation, Line: m.Line, Model: m.Model, Automatic: m.Automatic,
	}
	if y := c.At.Year(); y < 1971 || y > 9999 { // none, or one that neither a row nor a server can hold
		c.At = time.Now().UTC().Truncate(time.Millisecond)
	}
	return c
}

// checkpointID names the same moment of a session the same, however often and in whatever generation it is read. The
// line counts only for a record without a uuid.
func checkpointID(stream string, m *session.Checkpoint) string {
	at := m.UUID
	if at == "" {
		at = strconv.FormatInt(m.Line, 10)
	}
	sum := sha256.Sum256([]byte(stream + "\x00" + string(m.Trigger) + "\x00" + at))
	return "cp-" + hex.EncodeToString(sum[:6])
}

// addCheckpoints has checkpoints kept, and sent to where the session's lines go.
func addCheckpoints(p *derive.FoldStep, list []state.Checkpoint) error {
	if len(list) == 0 {
		return nil
	}
	items, err := checkpointItems(list)
	if err != nil {
		return err
	}
	p.Effects.Checkpoints = append(p.Effects.Checkpoints, list...)
	p.Effects.Batches = append(p.Effects.Batches, p.Packer.Checkpoints(items))
	return nil
}

// checkpointItem is a checkpoint as a ccship server gets it.
type checkpointItem struct {
	ID          string   `json:"id"`
	SessionID   string   `json:"session_id"`
	PortID      string   `json:"port_id,omitempty"`
	TokensUsed  int64    `json:"tokens_used"`
	TokenBudget int64    `json:"token_budget"`
	TriggerType string   `json:"trigger_type"`
	ContextHash string   `json:"context_hash"`
	Summary     string   `json:"summary"`
	ActiveFiles []string `json:"active_files"`
	CreatedAt   string   `json:"created_at"` // RFC 3339
	Generation  uint32   `json:"generation"`
	Line        int64    `json:"line"`
}

func checkpointItems(list []state.Checkpoint) ([]json.RawMessage, error) {
	items := make([]json.RawMessage, 0, len(list))
	for i := range list {
		c := &list[i]
		item, err := json.Marshal(checkpointItem{
			ID: c.ID, SessionID: c.Session, PortID: c.Port, TokensUsed: c.Tokens, TokenBudget: c.Budget, TriggerType: c.Trigger,
			ContextHash: c.ContextHash, Summary: c.Summary, ActiveFiles: append([]string{}, c.ActiveFiles...),
			CreatedAt: c.At.Format(time.RFC3339Nano), Generation: c.Generation, Line: c.Line,
		})
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}
