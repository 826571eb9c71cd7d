package daemon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

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

var _ observer = (*marker)(nil)

// begin takes in what is known of the budget by now: what is passed already because of it is no news.
func (m *marker) begin(p *pass) {
	m.due, m.say, m.err = nil, nil, nil
	p.session.Budget = m.budget(p.file.File.ID)
	if hasCheckpoints(p) {
		p.marks.Begin(p.session)
	}
}

// hasCheckpoints says whether a transcript can have checkpoints: an agent's ends with its task.
func hasCheckpoints(p *pass) bool { return p.file.File.Kind == tail.Main }

// budget is what is known of a transcript's budget beside itself.
func (m *marker) budget(id tail.FileID) session.BudgetOptions {
	known := m.db.Budgets()
	o := session.BudgetOptions{Learned: known.Learned, Pins: known.Models}
	if limit := known.Files[id]; limit > 0 {
		o.Pins = map[string]int64{"": limit}
	}
	return o
}

func (m *marker) event(p *pass, e *session.Event, watched bool) {
	if !hasCheckpoints(p) {
		return
	}
	mark, due := p.marks.Add(e, p.session, watched)
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

func (m *marker) end(p *pass) error {
	if m.err != nil {
		return m.err
	}
	p.step.Pending = append(p.step.Pending, m.say...)
	return addCheckpoints(p, m.due)
}

func checkpointOf(p *pass, m session.Mark) state.Checkpoint {
	c := state.Checkpoint{
		Session: p.facts.Stream.SessionID, Trigger: string(m.Trigger), Tokens: m.Tokens, Budget: m.Limit,
		ContextHash: m.ContextHash, Summary: m.Summary, ActiveFiles: m.ActiveFiles, At: m.Time.UTC(),
		Generation: p.file.Cursor.Generation, Line: m.Line, Model: m.Model, Automatic: m.Automatic,
	}
	if y := c.At.Year(); y < 1971 || y > 9999 { // none, or one that neither a row nor a server can hold
		c.At = time.Now().UTC().Truncate(time.Millisecond)
	}
	return c
}

// checkpointID names the same moment of a session the same, however often and in whatever generation it is read. The
// line counts only for a record without a uuid.
func checkpointID(stream string, m *session.Mark) string {
	at := m.UUID
	if at == "" {
		at = strconv.FormatInt(m.Line, 10)
	}
	sum := sha256.Sum256([]byte(stream + "\x00" + string(m.Trigger) + "\x00" + at))
	return "cp-" + hex.EncodeToString(sum[:6])
}

// addCheckpoints has checkpoints kept, and sent to where the session's lines go.
func addCheckpoints(p *pass, list []state.Checkpoint) error {
	if len(list) == 0 {
		return nil
	}
	items, err := checkpointItems(list)
	if err != nil {
		return err
	}
	p.step.Checkpoints = append(p.step.Checkpoints, list...)
	p.step.Batches = append(p.step.Batches, p.packer.Checkpoints(items))
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
