package server

import (
	"context"
	"time"
)

// DerivationStore hands out streams whose derived data lags behind their lines. Several processes may use it at once.
type DerivationStore interface {
	// Lagging leases up to n streams for some seconds, most recently active first; no other caller gets them meanwhile.
	// Saving a derivation that is not Done extends the lease, Done ends it. A task begins at the zero Position again when
	// lines were stored before its position, or in an older generation or epoch.
	Lagging(ctx context.Context, n int) ([]Task, error)
	// SaveDerived stores all of a derivation or nothing. ErrStale when the stream was forgotten, or derived or reset by
	// someone else, or when lines were stored before the end of the derivation since the task was handed out.
	SaveDerived(ctx context.Context, d *Derivation) error
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
	Title       string // its own title, else ""
	FirstPrompt string // one line
	Model       string // of the newest answer
	Models      []string
	Branch      string
	Version     string    // of the program that wrote the file
	Started     time.Time // time of the first and the last record that has one; zero when none has
	Ended       time.Time
	Prompts     int64
	Messages    int64 // prompts and answers
	Tools       int64 // calls
	Errors      int64 // tool results and answers that are errors
	Compactions int64
	Context     int64 // tokens in use after the newest answer
	Window      int64 // tokens the model can take
	Limit       int64 // tokens at which Claude Code compacts by itself
	Lines       int64 // derived so far
}

// Tokens is what answers used, each answer counted once.
type Tokens struct {
	Answers      int64
	Input        int64
	Output       int64
	CacheRead    int64
	CacheWrite5m int64
	CacheWrite1h int64
}

// All is the number of tokens of every kind.
func (t Tokens) All() int64 {
	return t.Input + t.Output + t.CacheRead + t.CacheWrite5m + t.CacheWrite1h
}

// Add returns the sum of both.
func (t Tokens) Add(o Tokens) Tokens {
	return Tokens{
		Answers: t.Answers + o.Answers, Input: t.Input + o.Input, Output: t.Output + o.Output,
		CacheRead: t.CacheRead + o.CacheRead, CacheWrite5m: t.CacheWrite5m + o.CacheWrite5m,
		CacheWrite1h: t.CacheWrite1h + o.CacheWrite1h,
	}
}

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
	Time       time.Time
	Kind       string // "prompt", "answer", "thinking", "tool", "result", "title", "other"
	Text       string
}

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
	State     []byte // of the fold at Position
	Version   int64  // rises with every stored batch
}

// Derivation is what was derived from consecutive lines of a stream, to be stored in one step: the lines of Position's
// generation from Task.Position.Line, or from 0 if that is of another generation, up to before Position.Line.
type Derivation struct {
	Task     Task // as handed out, or with Position as saved last; the store returns ErrStale when it has moved on
	Position Position
	State    []byte
	Format   int64 // of State, and of how things are derived; see Renew
	Summary  Summary
	Texts    []Text // replace those stored for the same lines; at most one for each line and kind
	Answers  []Answer
	Drops    []Rewrite // replace those stored for the same generations
	Done     bool      // everything up to Task.Version is derived
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
