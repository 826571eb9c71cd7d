package wire

import (
	"time"

	"github.com/ccship/ccship/server"
)

// ParseCheckpoints reads the body of POST /api/checkpoints. The caller sets Owner and Received. An error is a
// *RefusalError.
func ParseCheckpoints(body []byte) (*server.CheckpointBatch, error) {
	var q struct {
		streamHead
		Items *few[checkpointItem] `json:"checkpoints"`
	}
	if err := decode(body, &q); err != nil {
		return nil, err
	}
	head, err := q.head()
	if err != nil {
		return nil, err
	}
	list, err := checkItems(q.Items, "checkpoints", (*checkpointItem).checkpoint)
	if err != nil {
		return nil, err
	}
	return &server.CheckpointBatch{Head: head, List: list}, nil
}

type checkpointItem struct {
	ID          string      `json:"id"`
	PortID      string      `json:"port_id"`
	TokensUsed  int64       `json:"tokens_used"`
	TokenBudget int64       `json:"token_budget"`
	Trigger     string      `json:"trigger_type"`
	ContextHash string      `json:"context_hash"`
	Summary     string      `json:"summary"`
	ActiveFiles few[string] `json:"active_files"`
	Created     time.Time   `json:"created_at"`
	Generation  int64       `json:"generation"`
	Line        *int64      `json:"line"`
}

// checkpoint checks an item. An error is a *RefusalError.
func (i *checkpointItem) checkpoint() (server.Checkpoint, error) {
	c := server.Checkpoint{ID: i.ID, PortID: i.PortID, TokensUsed: i.TokensUsed, TokenBudget: i.TokenBudget,
		Trigger:     i.Trigger,
		ContextHash: i.ContextHash, Summary: i.Summary, ActiveFiles: i.ActiveFiles, Created: i.Created,
		Generation: i.Generation, Line: -1}
	if i.Line != nil {
		c.Line = *i.Line
	}
	for _, n := range []int64{c.TokensUsed, c.TokenBudget, c.Generation, c.Line + 1} {
		if n < 0 || n > MaxNumber {
			return c, BadRequest("bad_item", "a number is negative or out of range")
		}
	}
	for _, short := range []string{c.ID, c.PortID, c.Trigger, c.ContextHash} {
		if len(short) > maxShort {
			return c, BadRequest("bad_item", "a name is too long")
		}
	}
	if c.ID == "" || c.Trigger == "" {
		return c, BadRequest("bad_item", "id and trigger_type must be set")
	}
	if len(c.Summary) > maxSummary || len(c.ActiveFiles) > maxActive {
		return c, BadRequest("bad_item", "summary or active_files is too long")
	}
	for _, file := range c.ActiveFiles {
		if len(file) > server.MaxPath {
			return c, BadRequest("bad_item", "a path is too long")
		}
	}
	return c, checkMoment(c.Created, "created_at")
}
