package server

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrRetired is for what was stored and that a rule of retention removed.
var ErrRetired = errors.New("retired by policy")

// Retention removes what rules say, and remembers what it removed: no client sends it again, and digests hold. Without
// rules everything is kept for ever. Safe for concurrent use, also by several processes.
type Retention interface {
	// RetentionRules lists the rules in force, in the order in which they were made.
	RetentionRules(ctx context.Context) ([]RetentionRule, error)
	// AddRetentionRule puts a rule in force, and returns its number.
	AddRetentionRule(ctx context.Context, r RetentionRule) (int64, error)
	// RemoveRetentionRule ends a rule. ErrNotFound when there is none of that number.
	RemoveRetentionRule(ctx context.Context, id int64) error
	// Holds lists what no rule may touch.
	Holds(ctx context.Context) ([]Hold, error)
	// AddHold keeps something from every rule, and returns the hold's number.
	AddHold(ctx context.Context, h Hold) (int64, error)
	// RemoveHold ends a hold. ErrNotFound when there is none of that number.
	RemoveHold(ctx context.Context, id int64) error
	// Retire does what the rules say, or with Dry only counts it. It may be interrupted at any time: what it did so far
	// stays, and the next call does the rest. Of several processes that call it at once, one works.
	Retire(ctx context.Context, how RetireOptions) (RetentionReport, error)
	// RetentionLog lists what was applied to sessions, latest first, at most limit.
	RetentionLog(ctx context.Context, limit int) ([]RetentionEntry, error)
	// Vacuum gives space that is free in the database back to the disk. PostgreSQL without full only uses it again.
	Vacuum(ctx context.Context, full bool) error
	// KeptUntil says what retention did to a stream, and what the rules in force will do.
	KeptUntil(ctx context.Context, stream int64, now time.Time) (RetentionOutlook, error)
}

// What a rule is about.
const (
	RetireGenerations = "generations" // lines that a rewind left, and bytes that others replaced
	RetireSessions    = "sessions"    // sessions with their agents and attachments
)

// What a rule does.
const (
	ActionDrop = "drop"
	ActionCold = "cold" // moves to cold storage
)

// RetentionRule says what is removed, or moved to cold storage.
type RetentionRule struct {
	ID      int64
	What    string        // RetireGenerations or RetireSessions
	Action  string        // ActionDrop or ActionCold
	Age     time.Duration // of what was superseded, or has rested, for so long; 0: of any age
	Over    int64         // only what a user has above so many bytes, oldest first; 0: all of it
	User    int64         // 0: everybody
	Project string        // hash or name; "": all
	// Checkpoints says that sessions with checkpoints are dropped too; their checkpoints stay.
	Checkpoints bool
	// Usage says that what dropped sessions used leaves the sums.
	Usage bool
	By    string // who made it
	At    time.Time
}

// Hold keeps a user, a project or a session from every rule. What is "" or 0 means all.
type Hold struct {
	ID      int64
	User    int64
	Project string // hash or name
	Session string
	By, Why string
	At      time.Time
}

// RetireOptions says how rules are applied.
type RetireOptions struct {
	Dry bool
	By  string // who applies them
	// Every is how long the rules rest after an application; 0: they do not rest, a person applies them. With Every, the
	// time since the last application counts as three days at most: a clock that jumps ahead drops little.
	Every time.Duration
	Now   time.Time
	// Progress is called now and then; may be nil.
	Progress func(RetentionCount)
}

// RetentionCount counts what a rule took or would take of one user.
type RetentionCount struct {
	Rule        int64
	User        int64
	Sessions    int64 // that are dropped, or of which something is
	Generations int64
	Lines       int64
	Bytes       int64 // of lines and files, as they came
	Files       int64
}

// Add adds another count.
func (c *RetentionCount) Add(o RetentionCount) {
	c.Sessions += o.Sessions
	c.Generations += o.Generations
	c.Lines += o.Lines
	c.Bytes += o.Bytes
	c.Files += o.Files
}

// Any reports whether something is counted.
func (c RetentionCount) Any() bool { return c.Sessions+c.Generations+c.Lines+c.Files > 0 }

// RetentionReport is what was done, or would be.
type RetentionReport struct {
	Counts []RetentionCount // by rule and user
	Kept   []KeptCount      // what a rule is about and may not take
	Busy   bool             // another process applies the rules, or they rest
}

// KeptCount counts sessions that a rule may not take, by the reason.
type KeptCount struct {
	Rule     int64
	Why      string // one of the constants below
	Sessions int64
}

// Why a rule does not take a session.
const (
	KeptHold       = "hold"
	KeptRunning    = "in use" // lines came a short time ago
	KeptMark       = "star, name, note or tag"
	KeptLink       = "share link"
	KeptDocument   = "linked document"
	KeptCheckpoint = "checkpoint"
	KeptFork       = "fork"
)

// RetentionEntry is what was applied to one transcript.
type RetentionEntry struct {
	Run       time.Time // when the application began
	At        time.Time // of the last step
	By        string
	Rule      int64
	Says      string // the rule in words
	Action    string
	User      int64
	SessionID string
	Machine   string
	Generations, Lines,
	Bytes, Files int64
}

// RetentionOutlook says what retention did to a session, and when it will do something.
type RetentionOutlook struct {
	Retired time.Time `json:"-"`            // when the session was dropped; zero: it was not
	Rule    string    `json:"rule"`         // that dropped it, in words
	Lines   int64     `json:"lines"`        // that were removed, superseded ones too
	Until   time.Time `json:"-"`            // when the first rule is due that takes the session; zero: none does
	Due     string    `json:"due_rule"`     // that rule, in words
	Kept    string    `json:"kept_because"` // why no rule takes it; "" when one may
}

// RetiredRun is consecutive lines of a generation that were removed. Nothing that is stored lies between them.
type RetiredRun struct {
	First, Last int64
	At          time.Time
	Lines       []RetiredLine
}

// RetiredLine is what is known of a line that was removed.
type RetiredLine struct {
	Index, Received, Size int64
	Kind                  Kind
	SHA256                []byte // of its bytes and a newline; nil when hashes were not asked for
}

// Says returns the rule in words.
func (r *RetentionRule) Says() string {
	words := "drop "
	if r.Action == ActionCold {
		words = "move to cold storage "
	}
	if r.What == RetireGenerations {
		words += "what rewinds left"
	} else {
		words += "sessions"
	}
	switch {
	case r.Age > 0 && r.What == RetireSessions:
		words += " not active for " + days(r.Age)
	case r.Age > 0:
		words += " at least " + days(r.Age) + " ago"
	}
	if r.Over > 0 {
		words += fmt.Sprintf(" while a user has more than %d bytes", r.Over)
	}
	if r.Project != "" {
		words += " in project " + r.Project
	}
	if r.Usage {
		words += ", with what they used"
	}
	return words
}

// Because says why no rule takes a session; "" when one may.
func (k RetentionOutlook) Because() string {
	return map[string]string{
		KeptHold:       "it is on hold",
		KeptMark:       "a user gave it a star, a name, a note or a tag",
		KeptLink:       "a share link leads to it",
		KeptDocument:   "it has linked documents",
		KeptCheckpoint: "it has checkpoints",
		KeptFork:       "it shares history with a session that is kept",
	}[k.Kept]
}

// days returns a length of time in days, or shorter units where it is none.
func days(d time.Duration) string {
	switch {
	case d == 24*time.Hour:
		return "a day"
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return d.String()
}

// RetiredOf counts the lines of a view that retention removed, and says when it did so last.
func RetiredOf(ctx context.Context, snap Snapshot, v View) (n int64, last time.Time, err error) {
	for _, span := range v.Spans {
		err := snap.Retired(ctx, span, false, func(r *RetiredRun) error {
			for _, l := range r.Lines {
				if span.From <= l.Index && l.Index < span.To {
					n++
				}
			}
			if r.At.After(last) {
				last = r.At
			}
			return nil
		})
		if err != nil {
			return 0, last, err
		}
	}
	return n, last, nil
}

// ErrCold means that what was asked for is in cold storage, which can't be reached now. What is in the database is
// answered, and lines are stored.
var ErrCold = errors.New("cold storage can't be reached now")

// Cooler moves what is old out of the database, to a location that costs less. Reading gives the same before and after,
// and when it is interrupted. Several processes may use it at once.
type Cooler interface {
	// Cool moves blocks of streams that got no lines since before, and files that came before it, and removes what is not
	// used any more from the location. Without a location it does nothing.
	Cool(ctx context.Context, before time.Time) (Cooled, error)
	// Return brings blocks of streams back into the database that got their last lines from since on and before until. It
	// calls progress now and then.
	Return(ctx context.Context, since, until time.Time, progress func(Returned)) (Returned, error)
	// Sweep only removes what is not used any more.
	Sweep(ctx context.Context) error
	// Cold says what is there.
	Cold(ctx context.Context) (Cold, error)
	// Warm says what is still in the database. It looks at every transcript.
	Warm(ctx context.Context) (Warm, error)
}

// Cooled counts what was moved.
type Cooled struct{ Objects, Bytes int64 }

// Returned counts what was brought back. Damaged are objects that are lost, or have other bytes: they stay.
type Returned struct{ Objects, Bytes, Damaged int64 }

// Cold is what a store keeps outside of its database.
type Cold struct {
	Place   string // a URL; "" if there is none
	Objects int64
	Bytes   int64
	Pending int64 // objects that are being written, or are still to be removed
	Err     error // of the last use of the location; nil: it answers
}

// Warm is what a store still has in its database.
type Warm struct {
	Streams int64     // transcripts of which something could be moved to cold storage
	Since   time.Time // when the one that rests longest got its last lines; zero: there is none
	Lines   int64     // that are not packed yet
	Oldest  time.Time // when the first of them came; zero: there is none
}
