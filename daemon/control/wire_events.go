package control

import "time"

// Types of an Event.
const (
	EventStatus       = "status"       // the first one, and whenever state, servers or pause change
	EventAcknowledged = "acknowledged" // at most two a second
	EventTranscript   = "transcript"   // one is delivered for the first time
	EventRewind       = "rewind"       // a new generation began
	EventAdvice       = "advice"       // came, or went
)

// Event is one of GET /v1/events (text/event-stream; the SSE event's name is the Type). One member besides Type and
// At is set, that of the type.
type Event struct {
	SchemaVersion int       `json:"schema_version"`
	Type          string    `json:"type"` // one of the types above
	At            time.Time `json:"at"`

	Status       *StatusEvent     `json:"status,omitempty"`
	Acknowledged *Progress        `json:"acknowledged,omitempty"`
	Transcript   *TranscriptEvent `json:"transcript,omitempty"` // for types transcript and rewind
	Advice       *AdviceEvent     `json:"advice,omitempty"`
}

// StatusEvent is a Status in short.
type StatusEvent struct {
	State   string        `json:"state"`
	Pause   *Pause        `json:"pause,omitempty"`
	Servers []ServerState `json:"servers"`
}

// ServerState is a Server in short.
type ServerState struct {
	URL   string `json:"url"`
	State string `json:"state"` // ok, unknown, retrying, refused
	Kind  string `json:"kind,omitempty"`
}

// Progress counts deliveries.
type Progress struct {
	Entries int64 `json:"entries"` // since the previous event
	Bytes   int64 `json:"bytes"`   // of these entries, uncompressed
	Waiting int64 `json:"waiting"` // entries not yet acknowledged
}

// TranscriptEvent names a transcript.
type TranscriptEvent struct {
	Session    string `json:"session"` // the stream's name
	Parent     string `json:"parent,omitempty"`
	Path       string `json:"path"`
	Cwd        string `json:"cwd,omitempty"`
	Project    string `json:"project"`
	Generation uint32 `json:"generation"`
	Line       int64  `json:"line"` // the first new line
}

// AdviceEvent is advice that came, or that no longer holds.
type AdviceEvent struct {
	Advice
	Gone bool `json:"gone,omitempty"`
}
