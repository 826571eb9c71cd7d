package api

import (
	"time"

	"github.com/ccship/ccship/server"
)

// retentionAnswer is what retention did to a session, and what its rules will do.
type retentionAnswer struct {
	RetiredAt *time.Time `json:"retired_at"` // null: the session was not dropped
	Rule      string     `json:"rule"`       // that dropped it, in words
	Lines     int64      `json:"lines"`      // that were removed, superseded ones too
	DueAt     *time.Time `json:"due_at"`     // null: no rule takes it at a time that is known
	DueRule   string     `json:"due_rule"`
	Kept      string     `json:"kept_because"` // "" when a rule may take it, or none is about it
}

// retentionAnswerOf returns what answers say of retention.
func retentionAnswerOf(k server.RetentionOutlook) retentionAnswer {
	a := retentionAnswer{Rule: k.Rule, Lines: k.Lines, DueRule: k.Due, Kept: k.Kept}
	if !k.Retired.IsZero() {
		a.RetiredAt = &k.Retired
	}
	if !k.Until.IsZero() {
		a.DueAt = &k.Until
	}
	return a
}
