package api

import (
	"time"

	"github.com/ccship/ccship/server"
)

// forgottenAnswer is a session that a user had removed.
type forgottenAnswer struct {
	SessionID string    `json:"session_id"`
	User      string    `json:"user"`
	At        time.Time `json:"at"`
	Lines     int64     `json:"lines_removed"`
}

// forgottenAnswerOf returns how a server.Forgotten is shown.
func forgottenAnswerOf(f server.Forgotten, names namesOf) forgottenAnswer {
	return forgottenAnswer{f.SessionID, names[f.Owner], f.At, f.Lines}
}
