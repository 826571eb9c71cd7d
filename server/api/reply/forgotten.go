package reply

import (
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api/query"
)

// Forgotten is a session that somebody had removed.
type Forgotten struct {
	SessionID string    `json:"session_id"`
	User      string    `json:"user"`
	At        time.Time `json:"at"`
	Lines     int64     `json:"lines_removed"`
}

// ForgottenOf is how a server.Forgotten is shown.
func ForgottenOf(f server.Forgotten, names query.Names) Forgotten {
	return Forgotten{f.SessionID, names[f.Owner], f.At, f.Lines}
}
