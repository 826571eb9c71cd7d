package server

import (
	"errors"
	"time"
)

// Kind says what the stored bytes of a line are.
type Kind uint8

const (
	Object   Kind = iota // the line's bytes: one JSON object and whatever is around it
	Opaque               // the line's bytes: anything else
	Oversize             // not the line: the client's note about a line longer than its cap
)

// String is the kind's name in answers.
func (k Kind) String() string {
	switch k {
	case Object:
		return "object"
	case Opaque:
		return "opaque"
	case Oversize:
		return "oversize"
	}
	return "unknown"
}

// Line is one line of a transcript, without its newline.
type Line struct {
	Index int64 // 0-based, blank lines counted
	Kind  Kind
	Raw   []byte
}

// Head is what a request says about the stream its lines belong to. A bare client has no Machine and no Epoch, and
// only generation 0.
type Head struct {
	SessionID   string
	ProjectHash string
	Machine     string
	Host        string
	Epoch       string
	Path        string
	Cwd         string
	Project     string
	Parent      string // session of an agent's transcript, else ""
	Generation  int64
	RewoundTo   int64 // first line of the generation
	EndLine     int64 // lines of the file as this request saw it
	EndOffset   int64 // bytes of it; 0 when the client does not say
	EOFNewline  bool  // those bytes end in a newline
}

// Batch is one request's lines, to be stored in one step.
type Batch struct {
	Head     Head
	Owner    int64  // user whose stream it is: the one of the key that sent it; 0: nobody's, seen by owners only
	Lines    []Line // their bytes belong to the caller, who leaves them alone until Put returns
	Received time.Time
}

// Session is one stream as its newest generation has it.
type Session struct {
	ID          int64 // of the stream in this store
	Owner       int64 // user; 0: nobody's
	SessionID   string
	ProjectHash string
	Machine     string
	Host        string
	Project     string
	Cwd         string
	Path        string
	Parent      string
	Epoch       string
	Epochs      int
	Generation  int64
	Lines       int64     // of the file, counting lines that are not stored
	Bytes       int64     // of the file; for a bare client those that were stored
	First, Last time.Time // received
	// Active is when it was last written to: the newest record's time once that is derived, never later than Last.
	Active time.Time
}

// Epoch is one life of a client's state. The newest is the one that arrived first most recently.
type Epoch struct {
	ID    int64 // among those of its stream
	Name  string
	Rank  int64 // 1 for the first that arrived
	First time.Time
}

// Generation is one stretch of a file between two rewinds.
type Generation struct {
	Number     int64
	RewoundTo  int64
	EndLine    int64
	EndOffset  int64 // 0 when unknown
	EOFNewline bool
	First      time.Time
}

// Ref names a stream.
type Ref struct {
	Stream    int64 // ID; not 0: this one, and SessionID, Owner and Machine do not matter
	SessionID string
	Owner     int64   // 0: one's own, else whoever's was heard last
	Machine   *string // nil: the one heard last; "": bare clients
	Epoch     string  // "": the newest
}

// Page bounds a listing. After is the Next of the page before it, "" at first.
type Page struct {
	After string
	Limit int
	// Recent lists the session active last first; else the oldest first, an order that new lines do not change.
	Recent bool
}

// Sessions is one page of a listing. Next is "" on the last one.
type Sessions struct {
	List []Session
	Next string
}

// Key is an API key as it is stored: without the key.
type Key struct {
	ID      int64
	User    User
	Name    string
	Hash    [32]byte // sha256 of the key
	Created time.Time
	Used    time.Time // zero: never; kept to the minute
	Revoked time.Time // zero: never; from then on it is refused. A rotated key's lies ahead
}

var (
	// ErrNotFound is for sessions, epochs, generations and keys that are not there.
	ErrNotFound = errors.New("not found")
	// ErrExists is for a second key with a name in use.
	ErrExists = errors.New("exists already")
	// ErrBadPage is for a Page.After that no listing gave.
	ErrBadPage = errors.New("unknown page")
	// ErrForgotten is for lines of a session that was forgotten: they are not stored, and never will be.
	ErrForgotten = errors.New("the session was forgotten")
	// ErrStale is for a derivation of lines that somebody else has derived meanwhile, or that have changed.
	ErrStale = errors.New("derived from something else")
)
