package api

import (
	"time"

	"github.com/ccship/ccship/server"
)

// checkpointAnswer is a checkpoint on the wire.
type checkpointAnswer struct {
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

// checkpointAnswerOf returns how a server.Checkpoint is shown.
func checkpointAnswerOf(c server.Checkpoint, names namesOf) checkpointAnswer {
	return checkpointAnswer{c.ID, c.SessionID, c.Machine, names[c.Owner], c.PortID, c.TokensUsed, c.TokenBudget, c.Trigger,
		c.ContextHash, c.Summary, c.ActiveFiles, c.Created, c.Generation, lineOrNull(c.Line)}
}

// lineOrNull is nil for no line.
func lineOrNull(line int64) *int64 {
	if line < 0 {
		return nil
	}
	return &line
}
