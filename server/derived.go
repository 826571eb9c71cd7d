package server

import (
	"errors"
	"time"
)

// Facts are what a stream's newest view says about its session. They are derived, and can be rebuilt from the lines.
type Facts struct {
	Title       string // its own title, else ""
	FirstPrompt string // one line
	Model       string // of the newest answer
	Models      []string
	Branch      string
	Version     string    // of the program that wrote it
	Started     time.Time // of the first and the last record that has a time; zero when none has
	Ended       time.Time
	Prompts     int64
	Messages    int64 // prompts and answers
	Tools       int64 // calls
	Errors      int64 // tool results and answers that are errors
	Compactions int64
	Context     int64 // tokens in use after the newest answer
	Window      int64 // tokens the model can take
	Limit       int64 // tokens at which it compacts by itself
	Lines       int64 // derived so far
}

// Tokens are what answers cost, each answer counted once.
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

// Add is the sum of both.
func (t Tokens) Add(o Tokens) Tokens {
	return Tokens{
		Answers: t.Answers + o.Answers, Input: t.Input + o.Input, Output: t.Output + o.Output,
		CacheRead: t.CacheRead + o.CacheRead, CacheWrite5m: t.CacheWrite5m + o.CacheWrite5m,
		CacheWrite1h: t.CacheWrite1h + o.CacheWrite1h,
	}
}

// Answer is one model answer's use of tokens. The store keeps one for each Key and owner: of several the one that is
// not a sidechain's, among equals the one with more output tokens.
type Answer struct {
	Key       string // message id; without one something as unique
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

// Place says up to where a stream's lines are derived. They are derived epoch by epoch and generation by generation,
// in the order of their ranks and numbers: of those that are not the newest only texts and answers.
type Place struct {
	Epoch      int64 // ID; 0: nothing is derived
	Generation int64
	Line       int64 // the next one to derive
}

// Task is a stream whose lines are ahead of what is derived from them.
type Task struct {
	Stream    int64
	SessionID string
	Owner     int64
	Machine   string
	Place     Place
	State     []byte // of the fold at Place
	Version   int64  // rises with every batch stored
}

// Derivation is what was derived from one stretch of a stream's lines, to be stored in one step: the lines of
// Place's generation from Task.Place.Line, or from 0 if that is another generation's, up to before Place.Line.
type Derivation struct {
	Task    Task // as it was handed out, or with Place as saved last; the store answers ErrStale when it has moved on
	Place   Place
	State   []byte
	Format  int64 // of State and of how things are derived; see Renew
	Facts   Facts
	Texts   []Text // in place of those that are stored of the same stretch; at most one for each line and kind
	Answers []Answer
	Drops   []Rewrite // in place of those stored of the same generations
	Done    bool      // everything up to Task.Version is derived
}

// Rewrite is what is derived of one generation beyond the first: which lines of the view before it are nowhere in its
// own view. Lines 0 means none, and takes a Drop back.
type Rewrite struct {
	Epoch      int64 // ID
	Generation int64
	First      int64
	Last       int64 // behind the last
	Lines      int64
}

// SessionQuery chooses sessions. The zero value of a field chooses all.
type SessionQuery struct {
	Page
	Project string // project_hash or name
	Machine *string
	User    int64
	Model   string
	Branch  string
	Since   time.Time // active at or after
	Until   time.Time // begun before
	Text    string    // in title, first prompt, project or session id
	Parent  string    // only agents of this session
	Agents  bool      // agents' transcripts too; always with Parent
}

// Group is a project on a machine with how much there is of it.
type Group struct {
	ProjectHash string
	Project     string
	Cwd         string
	Machine     string
	Host        string
	Owner       int64
	Sessions    int64
	Bytes       int64
	Last        time.Time
}

// SearchQuery looks for text in lines.
type SearchQuery struct {
	Text       string // words, all of them; in double quotes: next to each other
	Kinds      []string
	Project    string
	Machine    *string
	User       int64
	Model      string
	Session    string // only in this session and its agents
	Since      time.Time
	Until      time.Time
	Superseded bool   // lines that a rewind took out of the newest view too
	After      string // Next of the page before
	Limit      int
}

// Hit is one line that was found.
type Hit struct {
	Session    Session
	Facts      Facts
	Epoch      string // in which the line is stored
	Generation int64
	Line       int64
	Time       time.Time
	Kind       string
	Snippet    string // plain text; what was found stands between U+0002 and U+0003
	Current    bool   // the newest view shows it
}

// Hits is one page of a search, the newest line first, by the time it tells. Next is "" on the last one.
type Hits struct {
	List []Hit
	Next string
}

// UsageQuery sums tokens. By names what rows are told apart by: "day", "hour" (of the week), "project", "model",
// "machine", "user", "session".
type UsageQuery struct {
	By      []string
	Since   time.Time
	Until   time.Time
	Zone    time.Duration // east of UTC, for days and hours
	Project string
	Machine *string
	User    int64
	Model   string
	Session string
	Agents  bool // with Session: its agents' answers too
}

// UsageRow is one sum. Fields that By does not name are empty.
type UsageRow struct {
	Day     string // 2026-11-21
	Hour    int    // 0 is Monday, 00:00–01:00; -1 when not asked for
	Project string // project_hash
	Name    string // of the project
	Model   string
	Machine string
	User    int64
	Session string
	Tokens  Tokens
}

// Drop is a rewrite of a file that took lines out of it. Lines that only moved are not dropped.
type Drop struct {
	Session    Session
	Epoch      string // in which it happened; Session is the stream as it is now
	Generation int64  // the one that began with it
	At         time.Time
	First      int64 // the dropped lines lie between First and before Last in the view before it
	Last       int64
	Lines      int64 // how many they are
}

// What a Change is about, beside lines ("").
const (
	AboutCheckpoints = "checkpoints"
	AboutDocuments   = "documents" // and wishes
)

// Change says that lines were stored, or what About names: then there are no lines and no generation.
type Change struct {
	About      string
	Stream     int64
	SessionID  string
	Machine    string
	Owner      int64
	Project    string // project_hash
	Generation int64
	From, To   int64 // lines stored, From up to before To
	At         time.Time
}

// ErrTooManyListeners refuses a listener beyond those that the server, or one user, may have.
var ErrTooManyListeners = errors.New("too many listeners")

// Forgotten is a session that was removed and is not to be stored again.
type Forgotten struct {
	Owner     int64
	SessionID string
	At        time.Time
	Lines     int64 // that were removed
}
