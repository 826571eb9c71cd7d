package reply

import (
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api/query"
)

// Checkpoint is a checkpoint on the wire.
type Checkpoint struct {
	ID          string    `json:"id"`
	SessionID   string    `json:"session_id"`
	Machine     string    `json:"machine"`
	User        string    `json:"user"`
	PortID      string    `json:"port_id"`
	TokensUsed  int64     `json:"tokens_used"`
	TokenBudget int64     `json:"token_budget"`
	Trigger     string    `json:"trigger_type"`
	ContextHash string    `json:"context_hash"`
	Summary     string    `json:"summary"`
	ActiveFiles []string  `json:"active_files"`
	Created     time.Time `json:"created_at"`
	Generation  int64     `json:"generation"`
	Line        *int64    `json:"line"`
}

// CheckpointOf is how a server.Checkpoint is shown.
func CheckpointOf(c server.Checkpoint, names query.Names) Checkpoint {
	return Checkpoint{c.ID, c.SessionID, c.Machine, names[c.Owner], c.PortID, c.TokensUsed, c.TokenBudget, c.Trigger,
		c.ContextHash, c.Summary, c.ActiveFiles, c.Created, c.Generation, LineOrNull(c.Line)}
}

// LineOrNull is nil for no line.
func LineOrNull(line int64) *int64 {
	if line < 0 {
		return nil
	}
	return &line
}
