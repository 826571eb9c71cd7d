package server

import (
	"cmp"
	"context"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/transcript/provenance"
)

// DerivationStore hands out streams whose derived data lags behind their lines. Several processes may use it at once.
type DerivationStore interface {
	// Lagging leases up to n streams for some seconds; no other caller gets them meanwhile. Streams that were wholly
	// derived before come first, those that wait longest in front; then those that never were, and last those that
	// Renew or ResetDerived has derived again, most recently written first. Saving a derivation that is neither Done nor
	// Released extends the lease. A task begins at the zero Position again when lines were stored before its position,
	// or in an older generation or epoch.
	Lagging(ctx context.Context, n int) ([]Task, error)
	// SaveDerived stores all of these derivations, of different streams, or nothing. ErrStale when a stream was
	// forgotten, or derived or reset by someone else, or when lines were masked, or stored before the end of the
	// derivation, since the task was handed out.
	SaveDerived(ctx context.Context, list ...*Derivation) error
	// Renew has everything derived again that was derived in a Format lower than format, and nothing else. What is
	// derived stays until then.
	Renew(ctx context.Context, format int64) error
	// Lag returns how many streams are not wholly derived.
	Lag(ctx context.Context) (int64, error)
	// ResetDerived removes everything derived from every stream, so that all of it is derived again. Tasks that are
	// handed out become stale.
	ResetDerived(ctx context.Context) error
}

// Summary is what the newest view of a stream says about its session. It can always be derived again from the lines.
type Summary struct {
	// Title is what Claude or the person named the session, else a plan's heading, else the first prompt that says
	// something, without markup; "" if there is none of these.
	Title       string    `json:"title"`
	FirstPrompt string    `json:"first_prompt"` // one line
	Model       string    `json:"model"`        // of the newest answer
	Models      []string  `json:"models"`
	Branch      string    `json:"branch"`
	Version     string    `json:"version"` // of the program that wrote the file
	Started     time.Time `json:"-"`       // time of the first and the last record that has one; zero when none has
	Ended       time.Time `json:"-"`
	Prompts     int64     `json:"prompts"`
	Messages    int64     `json:"messages"` // prompts and answers
	Tools       int64     `json:"tools"`    // calls
	Errors      int64     `json:"errors"`   // tool results and answers that are errors
	Compactions int64     `json:"compactions"`
	Context     int64     `json:"context_tokens"`    // tokens in use after the newest answer
	Window      int64     `json:"window_tokens"`     // tokens the model can take
	Limit       int64     `json:"compact_at_tokens"` // tokens at which Claude Code compacts by itself
	Lines       int64     `json:"derived_lines"`     // derived so far
	// Origin is the session that the records name and the id of the first of them: copies of a session have the same. ""
	// is not known. Copy is set if the stream's own name is another one.
	Origin string `json:"-"`
	Copy   bool   `json:"-"`
}

// Name returns what people read as the session's name. It is never an id.
func (s Summary) Name() string { return cmp.Or(s.Title, protocol.Untitled) }

// Behind reports whether so much of a session's lines is not derived yet that the numbers would mislead. A live session
// is always a moment behind.
func (s Summary) Behind(lines int64) bool {
	const moment = 1000 // lines; they are derived within a second
	return lines-s.Lines > moment || lines > 0 && s.Lines == 0
}

// Tokens is what answers used.
type Tokens = protocol.Tokens

// Answer is the tokens that one model answer used. The store keeps one for each Key and owner: of several the one that
// is not a sidechain's, among equals the one with more output tokens.
type Answer struct {
	Key       string // message id; without one, something as unique
	Sidechain bool
	Model     string
	Time      time.Time
	Tokens    Tokens // Answers is 1
}

// Text is what can be found in one line.
type Text struct {
	Generation int64 // in which the line is stored
	Line       int64
	Turn       int64 // the line of the prompt that it follows, or its own, as far as the deriver knows
	Time       time.Time
	Kind       string // one of TextKinds or PlaceKinds
	Text       string
	Carried    bool // the line alone does not tell it
}

// TextKinds returns the kinds of texts that a search without kinds looks through: what was said and done. A prompt is
// the person's words, a message those of another session, an agent, a schedule or a background task. One of the history
// is a prompt of a session that is not stored.
func TextKinds() []string {
	return []string{"prompt", "message", "answer", "thinking", "tool", "result", "title", "other", HistoryKind}
}

// HistoryKind is the kind of a prompt that only the prompt history has.
const HistoryKind = "history"

// PlaceKinds returns the kinds of texts that only say what a line touched, in words that a text of another kind has
// too: files changed and files read (each path between < and >, with slashes), commands run, and errors.
func PlaceKinds() []string { return []string{EditKind, ReadKind, CommandKind, ErrorKind} }

// The kinds of PlaceKinds.
const (
	EditKind    = "edit"
	ReadKind    = "read"
	CommandKind = "command"
	ErrorKind   = "error"
)

// Position is up to where the lines of a stream are derived. They are derived epoch by epoch and generation by
// generation, in the order of ranks and numbers. From those that are not the newest, only texts and answers are kept.
type Position struct {
	Epoch      int64 // ID; 0: nothing is derived
	Generation int64
	Line       int64 // the next one to derive
}

// Task is a stream with lines that are not derived yet.
type Task struct {
	Stream    int64
	SessionID string
	Owner     int64
	Machine   string
	Position  Position
	Version   int64   // rises with every stored batch
	Derived   int64   // Version of the task that was done last; 0 or less: none, or nothing of it counts
	Masked    int64   // rises whenever stored lines are masked
	Summary   Summary // as derived so far
}

// Derivation is what was derived from consecutive lines of a stream, to be stored in one step: the lines of Position's
// generation from Task.Position.Line, or from 0 if that is of another generation, up to before Position.Line.
type Derivation struct {
	Task     Task // as handed out, or with Position as saved last; the store returns ErrStale when it has moved on
	Position Position
	// State is that of the fold at Position. KeepState keeps the one that is stored: it may be of an earlier line of
	// Position's view, so that a long state is not written for every line.
	State     []byte
	KeepState bool
	Format    int64 // of State, and of how things are derived; see Renew
	Summary   Summary
	Texts     []Text // replace those stored for the same lines; at most one for each line and kind
	Answers   []Answer
	Drops     []Rewrite // replace those stored for the same generations
	Moments   []Moment  // replace those stored at the same positions
	// Edits replace those stored for the same lines. They may also be of calls in earlier lines, whose results come here.
	Edits []provenance.Edit
	// Live says that the lines are of the newest view. Then Moments also replace all that are stored for the lines
	// from LiveFrom up to before Position.Line, and when Done for all later lines.
	Live     bool
	LiveFrom int64
	Done     bool // everything up to Task.Version is derived
	// Released ends the lease although more is to be derived. Rest is how long, after Done, no lines of the stream are
	// handed out: they gather.
	Released bool
	Rest     time.Duration
}

// Rewrite is what is derived from a generation other than the first: which lines of the view before it are nowhere in
// its own view. Lines 0 means none, and removes a Drop that was stored before.
type Rewrite struct {
	Epoch      int64 // ID
	Generation int64
	First      int64
	Last       int64 // after the last
	Lines      int64
}

// Moments lists what happened in sessions: the prompts, compactions, errors and so on of their timelines.
type Moments interface {
	// Moments lists moments of a stream's newest view in the order of their lines, or backwards. Who may see the stream
	// is the caller's to check.
	Moments(ctx context.Context, q MomentQuery) ([]Moment, error)
}

// Moment is one entry of a stream's timeline. Line and Part identify it.
type Moment struct {
	Line int64
	Part int64  // of several on one line
	Kind string // as package timeline names it; "" in a Derivation: the moment is gone
	Data []byte // as package timeline encodes it
}

// MomentQuery chooses moments of one stream.
type MomentQuery struct {
	Owner    int64 // of the stream
	Stream   int64
	Kinds    []string // none: all
	From, To int64    // lines from From up to before To; To 0: to the end
	// After is the last moment of the page before, whose line is in From; nil for the first page. Backwards there are no
	// further pages.
	After     *Moment
	Backwards bool
	Limit     int
}

// Provenance finds what sessions wrote to files.
type Provenance interface {
	// EditsOf lists the edits of files that sessions did, the newest first, that a scope sees; of all generations.
	EditsOf(ctx context.Context, scope Scope, q EditQuery) ([]WrittenEdit, error)
	// KeepCommits keeps shares until what is derived of their stream is removed, of each stream those of the newest
	// MaxCommits commits. Those of streams that are not stored are left out.
	KeepCommits(ctx context.Context, shares []CommitShare) error
	// Commits lists the shares of a stream, the newest commit first, if a scope sees it.
	Commits(ctx context.Context, scope Scope, owner, stream int64) ([]CommitShare, error)
}

// MaxCommits is how many commits of a stream are kept.
const MaxCommits = 100

// CommitShare is how much of a commit a session wrote. It is what that session and the commit tell: whatever other
// sessions wrote of the same lines does not count, because not everybody who may read this one may read those.
type CommitShare struct {
	Owner  int64 `json:"-"`
	Stream int64 `json:"-"`
	protocol.CommitShare
}

// EditQuery chooses edits.
type EditQuery struct {
	Name    string    // of the files, without folders
	To      time.Time // not later
	Limit   int
	Project string // project_hash, name or repository; "": of any
	// Sums are the lines that are looked for. Of others an edit shows only how many there are: the store hashes what it is
	// asked for with its own key.
	Sums []provenance.Sum
}

// WrittenEdit is an edit and the stream that it is in.
type WrittenEdit struct {
	provenance.Edit
	Stream, Owner              int64
	SessionID, Parent, Machine string
	ProjectHash, Title         string
	Copy                       bool // the stream is a copy of another session
}
