package server

import (
	"fmt"
	"time"
)

// Address names one stream: whose it is, of which session and machine.
type Address struct {
	Stream      int64     `json:"-"`
	Owner       int64     `json:"-"` // user; 0: none
	SessionID   string    `json:"session_id"`
	Machine     string    `json:"machine"`
	Host        string    `json:"host"`
	ProjectHash string    `json:"-"`
	Project     string    `json:"project"`
	Last        time.Time `json:"last_received"` // received
}

// AmbiguousError says that a session's id alone means sessions of several users.
type AmbiguousError struct {
	Session string
	Choices []Address // one for each user, the one heard from last first; at most MaxChoices
}

// MaxChoices is how many choices an AmbiguousError lists.
const MaxChoices = 50

// Error names the session.
func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("several users have a session %q; name the user whose session is meant", e.Session)
}
