package server

import (
	"context"
	"strings"
	"time"

	"github.com/ccship/ccship/protocol"
)

// Library finds sessions and what is derived from their lines. Safe for concurrent use. What a scope does not allow
// does not exist: ErrNotFound, never "forbidden".
type Library interface {
	SessionFinder
	Searcher
	Moments
	Provenance
	Forgetter
	Artifacts
}

// SessionFinder finds and opens sessions.
type SessionFinder interface {
	// Find lists sessions with their summaries. ErrBadPage for an After that no listing returned.
	Find(ctx context.Context, scope Scope, q SessionQuery) (Found, error)
	// Count counts the sessions that Find would list, up to most: it stops there. Page does not matter.
	Count(ctx context.Context, scope Scope, q SessionQuery, most int64) (int64, error)
	// Dropped counts rewrites that took lines out of files, up to most: it stops there. It also says which of some
	// sessions, that the scope sees, had any.
	Dropped(ctx context.Context, scope Scope, of []FoundSession, most int64) (Dropped, error)
	// Groups lists projects by machine, most recently active first. ErrBadPage for an After that no listing returned.
	Groups(ctx context.Context, scope Scope, q GroupQuery) (Groups, error)
	// View pins the state of one stream for reading. The caller closes the snapshot soon: until then a store may have to
	// keep old pages, and it limits how many snapshots are open.
	View(ctx context.Context, scope Scope, ref Ref) (Snapshot, error)
	// Resolve finds the stream that a ref names. It may have no lines yet, only artifacts.
	Resolve(ctx context.Context, scope Scope, ref Ref) (Address, error)
	// ShortNames returns the shortest beginnings of sessions' ids, of at least 8 characters, that no other session which
	// the scope sees has. A session that the scope sees several streams of has none: its id alone does not name one.
	ShortNames(ctx context.Context, scope Scope, ids []string) (map[string]string, error)
	// SummaryOf returns what is derived from a stream, or the zero Summary when nothing is yet.
	SummaryOf(ctx context.Context, stream int64) (Summary, error)
	// Received returns when the bytes of a line arrived that is stored in that generation of that epoch (an Epoch.ID of
	// the stream). For lines stored before times were kept it returns when the generation began. ErrNotFound for a line
	// that is not stored.
	Received(ctx context.Context, stream, epoch, generation, line int64) (time.Time, error)
}

// Searcher answers questions about what is derived.
type Searcher interface {
	// Search finds lines. Double quotes are the only operator; an empty query finds nothing. Case does not matter, and any
	// run of white space matches any other. Without kinds it looks through TextKinds. ErrBadPage for an After that no
	// search returned.
	Search(ctx context.Context, scope Scope, q SearchQuery) (Hits, error)
	// Rank finds sessions. Words are found in any form, and sessions that lack some of them too, behind those with more;
	// a phrase or an expression is in a text of each session that is found. ErrBadPage for an After that no Rank returned.
	Rank(ctx context.Context, scope Scope, a RankQuery) (Ranked, error)
	// Usage sums answers, each counted once. Rows are ordered by the columns that By names, days first.
	Usage(ctx context.Context, scope Scope, q UsageQuery) ([]UsageRow, error)
	// Drops lists rewrites that took lines out of files, newest first.
	Drops(ctx context.Context, scope Scope, q DropQuery) ([]Drop, error)
	// Lags reports whether some stored lines are not derived yet, so that Drops with the same scope and query may still
	// change.
	Lags(ctx context.Context, scope Scope, q DropQuery) (bool, error)
}

// Forgetter removes sessions for good.
type Forgetter interface {
	// Forget removes every stream of one user's session and of its agents, with everything derived, and leaves a
	// tombstone that keeps them from being stored again. owner 0 is the only user of the scope who has such a session;
	// *AmbiguousError when there are several. ErrNotFound when there is none: what is only shared with a user is not that
	// user's to forget.
	Forget(ctx context.Context, scope Scope, session string, owner int64, at time.Time) (Forgotten, error)
	// ListForgotten lists forgotten sessions, latest first; for a user only its own.
	ListForgotten(ctx context.Context, scope Scope) ([]Forgotten, error)
}

// Found is one page of sessions with their summaries. Next is "" on the last one.
type Found struct {
	List []FoundSession
	Next string
}

// FoundSession is a session, its summary, and what the answers of it, its copies and their agents used, by model.
type FoundSession struct {
	Session
	Summary Summary
	Usage   []UsageRow             // by model and Long
	Agents  int64                  // transcripts of its agents
	Copies  []protocol.SessionCopy // that have nothing which this one has not
}

// SessionQuery chooses sessions. The zero value of a field chooses all.
type SessionQuery struct {
	Page
	Project string // project_hash, name or repository
	Machine *string
	User    int64
	Model   string
	Branch  string
	Since   time.Time // active at or after
	Until   time.Time // begun before
	Before  time.Time // active before
	Failed  bool      // with errors
	Reader  int64     // whose marks Starred and Tag are about
	Starred bool
	Tag     string
	Text    string   // in title, first prompt, project or session id
	Names   []string // session ids
	Parent  string   // only agents of this session
	Agents  bool     // agents' transcripts too; always with Parent
}

// Group is a project on a machine, with how much there is of it.
type Group struct {
	ProjectHash string    `json:"project_hash"`
	Repository  string    `json:"repository,omitempty"` // one for all projects that are the same one; "" unknown
	Project     string    `json:"project"`
	Cwd         string    `json:"cwd"`
	Machine     string    `json:"machine"`
	Host        string    `json:"host"`
	Owner       int64     `json:"-"`
	Sessions    int64     `json:"sessions"`
	Bytes       int64     `json:"bytes"`
	Last        time.Time `json:"last_active"`
}

// GroupQuery chooses projects. The zero value chooses all.
type GroupQuery struct {
	Project string // project_hash, name or repository
	After   string // Next of the page before
	Limit   int    // 0: all
}

// Groups is a page of projects. Next is "" on the last one.
type Groups struct {
	List []Group
	Next string
}

// SearchQuery looks for text in lines.
type SearchQuery struct {
	Text       string // words, all of them; in double quotes: next to each other
	Kinds      []string
	Tool       string // only calls of this tool and their results; * at its end: of those whose names begin so
	File       string // only calls that touched this file, by its path or the end of it, and their results
	Project    string
	Machine    *string
	User       int64
	Model      string
	Session    string // only in this session and its agents
	Since      time.Time
	Until      time.Time
	Superseded bool   // also lines that a rewind took out of the newest view
	After      string // Next of the page before
	Limit      int
}

// KindsOrAll returns the kinds of texts that a search looks through. Without words, a search for a file lists what
// touched it, and one for a tool its calls.
func (q *SearchQuery) KindsOrAll() []string {
	words := strings.TrimSpace(q.Text) != ""
	switch {
	case len(q.Kinds) > 0:
		return q.Kinds
	case words || q.Tool == "" && q.File == "":
		return TextKinds()
	case q.File != "":
		return []string{EditKind, ReadKind}
	}
	return []string{"tool"}
}

// Empty reports whether nothing is looked for.
func (q *SearchQuery) Empty() bool {
	return strings.TrimSpace(q.Text+q.Tool+q.File) == ""
}

// Hit is one line that was found.
type Hit struct {
	Session    Session
	Summary    Summary
	Epoch      string // in which the line is stored
	Generation int64
	Line       int64
	Time       time.Time
	Kind       string
	Snippet    string // plain text; each match stands between U+0002 and U+0003
	Current    bool   // the newest view shows it
}

// Hits is one page of a search, newest line first by the time in the line. Next is "" on the last one.
type Hits struct {
	List []Hit
	Next string
	// More says that a page was to become too much work before it was full. Even without hits, the next one may have some.
	More bool
}

// LongContext is the input of a request, in tokens, above which some models have another price. Cache reads and writes
// count as input.
const LongContext = 200_000

// UsageQuery sums tokens. By names the columns that rows differ in: "day", "hour" (of the week), "project", "model",
// "machine", "user", "session", "long".
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
	Agents  bool // with Session: also answers of its agents
}

// UsageRow is one sum. Fields that By does not name are empty.
type UsageRow struct {
	Day     string // 2026-11-21
	Hour    int    // 0 is Monday, 00:00–01:00; -1 when By has no hour
	Project string // project_hash
	Name    string // of the project
	Model   string
	Machine string
	User    int64
	Session string
	Long    bool // their requests were above LongContext
	Tokens  Tokens
}

// DropQuery chooses rewrites. The zero value of a field chooses all.
type DropQuery struct {
	Session string
	User    int64
	Limit   int
}

// Dropped says which sessions had rewrites that took lines out of their files.
type Dropped struct {
	Count   int64
	Streams map[int64]bool
}

// Drop is a rewrite of a file that took lines out of it. Lines that only moved are not dropped.
type Drop struct {
	Session    Session
	Epoch      string // in which it happened; Session is the stream as it is now
	Generation int64  // the one that began with it
	At         time.Time
	First      int64 // the dropped lines lie between First and before Last in the view before it
	Last       int64
	Lines      int64 // how many were dropped
}

// Forgotten is a session that was removed and is never stored again.
type Forgotten struct {
	Owner     int64     `json:"-"`
	SessionID string    `json:"session_id"`
	At        time.Time `json:"at"`
	Lines     int64     `json:"lines_removed"` // that were removed
}

// RankQuery asks for sessions, ranked.
type RankQuery struct {
	Query  Query
	Reader int64         // whose stars count, and who "me" is
	Zone   time.Duration // east of UTC, for months
	After  string        // Next of the page before
	Limit  int           // sessions
	Each   int           // hits of each session at most
	Facets bool
}

// Ranked is one page of sessions that a search found, the best first. Agents' transcripts count as their session.
type Ranked struct {
	List []RankedSession
	// Missing are the words that the best session lacks, as the query has them, when no session has all of them.
	Missing []string
	Total   int64 // sessions on all pages; at least so many if More is set
	Turns   int   // prompts with what follows them that were read; of too many those that match best, and More is set
	Facets  protocol.Facets
	Next    string // "" on the last page
	// More says that the search ended early, for it was to become too much work: there may be further sessions. The next
	// page goes on there, and may be empty.
	More bool
}

// RankedSession is a session that a search found.
type RankedSession struct {
	FoundSession
	Hits    []Hit    // the best first; none of a query that only has filters. Of agents' lines Session is the agent's
	Missing []string // words that the session lacks
	// Gone is the session that a prompt history names and that is not stored, or the folder if it names none:
	// FoundSession is the history then.
	Gone string
}
