package wire

import (
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
	server.Checkpoint
	ActiveFiles few[string] `json:"active_files"`
	Line        *int64      `json:"line"`
}

// checkpoint checks an item. An error is a *RefusalError.
func (i *checkpointItem) checkpoint() (server.Checkpoint, error) {
	c := i.Checkpoint
	c.SessionID, c.Machine, c.ActiveFiles, c.Line = "", "", i.ActiveFiles, -1 // the head says whose it is
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
