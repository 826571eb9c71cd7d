package api

import (
	"time"

	"github.com/ccship/ccship/server"
)

// sessionAnswer is a session on the wire.
type sessionAnswer struct {
	server.Session
	User   string  `json:"user"` // name of its owner; "" without one
	Parent *string `json:"parent_session_id"`
}

func sessionAnswerOf(x server.Session, names namesOf) sessionAnswer {
	return sessionAnswer{x, names[x.Owner], orNull(x.Parent)}
}

// summaryAnswer is what is derived of a session.
type summaryAnswer struct {
	server.Summary
	Started *time.Time `json:"started"`
	Ended   *time.Time `json:"ended"`
}

func summaryAnswerOf(f server.Summary) summaryAnswer {
	f.Models = orEmpty(f.Models)
	return summaryAnswer{f, timeAnswer(f.Started), timeAnswer(f.Ended)}
}

// groupAnswer is a project on a machine.
type groupAnswer struct {
	server.Group
	User string `json:"user"`
}

// retentionAnswer is what retention did to a session, and what its rules will do.
type retentionAnswer struct {
	server.RetentionOutlook
	RetiredAt *time.Time `json:"retired_at"` // null: the session was not dropped
	DueAt     *time.Time `json:"due_at"`     // null: no rule takes it at a time that is known
}

// timeAnswer is null for no time.
func timeAnswer(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
