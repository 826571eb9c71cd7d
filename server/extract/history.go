package extract

import (
	"encoding/json"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// Past is a line of the prompt history: what a person typed, in which session, and when.
type Past struct {
	Session string
	Text    string
	Time    time.Time
}

// PastOf reads a line of the prompt history; false for any other line. Those have a type.
func PastOf(l server.Line) (Past, bool) {
	if scanned := transcript.Scan(l.Raw); l.Kind != server.Object || scanned.Type != nil || scanned.SessionID == nil {
		return Past{}, false
	}
	var said struct {
		Display   string  `json:"display"`
		Timestamp float64 `json:"timestamp"` // milliseconds
		Session   string  `json:"sessionId"`
	}
	if json.Unmarshal(l.Raw, &said) != nil || said.Display == "" || said.Timestamp <= 0 || said.Session == "" {
		return Past{}, false
	}
	return Past{said.Session, said.Display, time.UnixMilli(int64(said.Timestamp)).UTC()}, true
}

// Past adds what a line of the prompt history says.
func (t *Texts) Past(l server.Line) {
	if p, ok := PastOf(l); ok {
		t.Add(l.Index, p.Time, server.HistoryKind, p.Text)
	}
}
