package server

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Kind says what the stored bytes of a line are.
type Kind uint8

const (
	Object   Kind = iota // the line's bytes: one JSON object and whatever surrounds it
	Opaque               // the line's bytes: anything else
	Oversize             // not the line, but the client's note about a line longer than its cap
)

// String is the kind's name in responses.
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
	Cut   int64 // bytes behind Raw that were not read, because of the Most of a Span
}

// Size is the length of the whole line in bytes, unless its beginning was skipped.
func (l *Line) Size() int64 { return int64(len(l.Raw)) + l.Cut }

// Head is what a request says about the stream of its lines. A client without the extension has no Machine and no
// Epoch, and only generation 0.
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
	Repository  string // one for all projects that are the same one elsewhere; "" unknown
	Generation  int64
	RewoundTo   int64 // first line of the generation
	EndLine     int64 // lines of the file as this request saw it
	EndOffset   int64 // bytes of the file; 0 when the client does not say
	EOFNewline  bool  // those bytes end in a newline

	Writer  Writer  // who sends it
	Receipt Receipt // set by the store once the request is durable
}

// Batch is the lines of one request, to be stored in one step.
type Batch struct {
	Head     Head
	Owner    int64  // user of the key that sent it; 0: none, visible to owners only
	Quota    Quota  // of that user
	Lines    []Line // the caller owns their bytes and does not change them until Put returns
	Received time.Time
	// Masked are those of the lines that the server masked by itself, when they are a copy. Retired are lines of which a
	// copy has only the hashes.
	Masked  []int64
	Retired []*RetiredRun
}

// Session is one stream as its newest generation has it.
type Session struct {
	ID          int64     `json:"-"` // of the stream in this store
	Owner       int64     `json:"-"` // user; 0: none
	SessionID   string    `json:"session_id"`
	ProjectHash string    `json:"project_hash"`
	Repository  string    `json:"-"` // what all of its project have in common; its ProjectHash if no repository is known
	Machine     string    `json:"machine"`
	Host        string    `json:"host"`
	Project     string    `json:"project"`
	Cwd         string    `json:"cwd"`
	Path        string    `json:"path"`
	Parent      string    `json:"-"`
	Epoch       string    `json:"epoch"`
	Epochs      int       `json:"epochs"`
	Generation  int64     `json:"generation"`
	Lines       int64     `json:"lines"`          // of the file, including lines that are not stored
	Bytes       int64     `json:"bytes"`          // of the file; of a bare client, those that were stored
	First       time.Time `json:"first_received"` // received
	Last        time.Time `json:"last_received"`
	// Active is when the file was last written: the time of its newest record once that is derived, never later than Last.
	Active time.Time `json:"last_active"`
	// Short is a short name of the session for its reader, which is set where addresses are made; "" if it has none.
	Short string `json:"-"`
}

// Epoch is one life of a client's state file. The newest is the one that first arrived last.
type Epoch struct {
	ID    int64     `json:"-"` // among those of its stream
	Name  string    `json:"epoch"`
	Rank  int64     `json:"-"` // 1 for the first that arrived
	First time.Time `json:"first_received"`
}

// Generation is a file between two rewinds.
type Generation struct {
	Number     int64     `json:"generation"`
	RewoundTo  int64     `json:"rewound_to"`
	EndLine    int64     `json:"end_line"`
	EndOffset  int64     `json:"-"` // 0 when unknown
	EOFNewline bool      `json:"eof_newline"`
	First      time.Time `json:"first_received"`
}

// Ref names a stream. A stream belongs to one user: a ref that several users' streams fit, none of them the caller's,
// is an *AmbiguousError, so that nobody can put a stream of theirs in place of another's.
type Ref struct {
	Stream    int64 // ID; when it is not 0, nothing below but Epoch counts; Owner may help to find it
	SessionID string
	Prefix    bool    // SessionID may be the beginning of an id, of at least 4 characters
	Owner     int64   // 0: the caller's own, else that of the only user who has such a session in the scope
	User      string  // its user's name; "" says nothing
	Machine   *string // nil: the user's one heard from last; "": clients without the extension
	Epoch     string  // "": the newest
}

// Page bounds a listing. After is the Next of the page before it, "" for the first.
type Page struct {
	After string
	Limit int
	// Recent lists the most recently active session first; otherwise the oldest comes first, an order that new lines do
	// not change.
	Recent bool
	// Longest lists the session with the most time between its first and its last record first. It has no next page.
	Longest bool
}

// Sessions is one page of a listing. Next is "" on the last one.
type Sessions struct {
	List []Session
	Next string
}

var (
	// ErrNotFound is for what does not exist, or not for the caller.
	ErrNotFound = errors.New("not found")
	// ErrExists is for a second user or key with a name in use.
	ErrExists = errors.New("exists already")
	// ErrHasMany is for a key, link or share beyond those that a user may have.
	ErrHasMany = errors.New("the user has as many as one may have; end some that are not needed first")
	// ErrBadPage is for a Page.After that no listing returned.
	ErrBadPage = errors.New("unknown page")
	// ErrForgotten is for lines of a forgotten session: they are not stored, and never will be.
	ErrForgotten = errors.New("the session was forgotten")
	// ErrDamaged is for lines that can't be read; see DamagedError.
	ErrDamaged = errors.New("damaged")
	// ErrStale is for a derivation of lines that someone else has derived meanwhile, or that have changed.
	ErrStale = errors.New("derived from outdated lines")
	// ErrBusy is for what took, or would have to wait, too long. It may be tried again.
	ErrBusy = errors.New("the server is busy; try again later, or ask for less")
	// ErrTooManyListeners refuses a listener beyond those that the server, or one user, may have.
	ErrTooManyListeners = errors.New("too many listeners")
)

// View is a file at the end of one generation. A line comes from the newest generation that starts at or before it, and
// only from there: what that generation lacks is a gap, never filled from an older one.
type View struct {
	Generation Generation
	Spans      []Span // where its lines are stored, ascending and adjacent
	Total      int64  // lines of the file, stored or not
}

// NewestView returns the view of the newest generation of a snapshot: the file as it is now.
func NewestView(snap Snapshot) (View, error) {
	gens := snap.Generations()
	return ViewOf(gens, gens[len(gens)-1].Number)
}

// ViewOf assembles the view of generation number. gens are ascending; some may be missing, because they may arrive in
// any order. ErrNotFound for a number that is not among them.
func ViewOf(gens []Generation, number int64) (View, error) {
	at := -1
	for i, g := range gens {
		if g.Number == number {
			at = i
		}
	}
	if at < 0 {
		return View{}, fmt.Errorf("generation %d: %w", number, ErrNotFound)
	}
	v := View{Generation: gens[at], Total: max(gens[at].EndLine, gens[at].RewoundTo)}
	upper := v.Total
	for i := at; i >= 0 && upper > 0; i-- {
		from := gens[i].RewoundTo
		if from >= upper {
			continue
		}
		v.Spans = append(v.Spans, Span{Generation: gens[i].Number, From: from, To: upper})
		upper = from
	}
	for i, j := 0, len(v.Spans)-1; i < j; i, j = i+1, j-1 {
		v.Spans[i], v.Spans[j] = v.Spans[j], v.Spans[i]
	}
	return v, nil
}

// Between returns the view's spans, cut to lines from from to before to.
func (v View) Between(from, to int64) []Span {
	var out []Span
	for _, s := range v.Spans {
		s.From, s.To = max(s.From, from), min(s.To, to)
		if s.From < s.To {
			out = append(out, s)
		}
	}
	return out
}

// DamagedError names lines that are stored and can't be read: their bytes are not those that were written. It is an
// ErrDamaged.
type DamagedError struct {
	Stream, Epoch int64
	Span          Span
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("lines %d to %d of generation %d are damaged: restore a backup, or run "+
		"`ccship verify --deep --repair` where they were written", e.Span.From+1, e.Span.To, e.Span.Generation)
}

// Is makes a DamagedError an ErrDamaged.
func (e *DamagedError) Is(target error) bool { return target == ErrDamaged }

// Readable is Lines of a snapshot without the lines that are damaged. It calls damaged with each stretch of them, if
// that is not nil.
func Readable(ctx context.Context, snap Snapshot, s Span, yield func(Line) error, damaged func(*DamagedError)) error {
	for {
		err := snap.Lines(ctx, s, yield)
		d, ok := errors.AsType[*DamagedError](err)
		if !ok {
			return err
		}
		if damaged != nil {
			damaged(d)
		}
		s.From = d.Span.To
	}
}

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
