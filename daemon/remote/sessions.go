package remote

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/transcript/session"
)

// maxPage is the largest number of sessions on a page.
const maxPage = 1000

// Session is a transcript on the server, with its derived summary.
type Session struct {
	SessionID   string                 `json:"session_id"`
	User        string                 `json:"user"`
	Machine     string                 `json:"machine"`
	Host        string                 `json:"host"`
	Project     string                 `json:"project"`
	Cwd         string                 `json:"cwd"`
	Path        string                 `json:"path"` // below the projects folder
	Parent      string                 `json:"parent_session_id"`
	Epoch       string                 `json:"epoch"`
	Epochs      int                    `json:"epochs"`
	Generation  int64                  `json:"generation"`
	Lines       int64                  `json:"lines"`
	Bytes       int64                  `json:"bytes"`
	Last        time.Time              `json:"last_active"`
	Agents      int                    `json:"agents"`
	Copies      []protocol.SessionCopy `json:"copies"` // in lists only
	Summary     Summary                `json:"summary"`
	Usage       []protocol.Tokens      `json:"usage"`
	Cost        *float64               `json:"cost_usd"` // nil: no price is known
	Unpriced    int64                  `json:"unpriced_tokens"`
	ForkedFrom  string                 `json:"forked_from"` // session; not in lists
	Retention   Retention              `json:"retention"`   // not in lists
	Generations []Past                 `json:"generations"` // of one epoch; not in lists
	Commits     []protocol.CommitShare `json:"commits"`     // not in lists
}

// Retention is what the server's policy did to a session, and what it will do.
type Retention struct {
	RetiredAt *time.Time `json:"retired_at"` // nil: no rule dropped it
	Rule      string     `json:"rule"`
	Lines     int64      `json:"lines"` // that were removed
	DueAt     *time.Time `json:"due_at"`
	DueRule   string     `json:"due_rule"`
	Kept      string     `json:"kept_because"`
}

// Tokens is the number of tokens of all kinds that the session's answers used.
func (s *Session) Tokens() (n int64) {
	for _, u := range s.Usage {
		n += u.All()
	}
	return n
}

// Summary is what the server derived of a session.
type Summary struct {
	Title       string     `json:"title"`
	FirstPrompt string     `json:"first_prompt"`
	Model       string     `json:"model"`
	Branch      string     `json:"branch"`
	Started     *time.Time `json:"started"`
	Messages    int64      `json:"messages"`
	Lines       int64      `json:"derived_lines"` // that the server has read so far
}

// Past is one generation of a transcript.
type Past struct {
	Generation int64     `json:"generation"`
	RewoundTo  int64     `json:"rewound_to"`
	EndLine    int64     `json:"end_line"`
	EOFNewline bool      `json:"eof_newline"`
	First      time.Time `json:"first_received"`
}

// Query selects sessions; the zero value selects all.
type Query struct {
	Project string // hash or name
	Machine *string
	Since   string // a time or a day, in a form that the server parses
	Text    string // in title, first prompt, project or session id
	Parent  string // only agents of this session
	User    string // only this user's
	Agents  bool   // agents' transcripts too
	Recent  bool   // most recently written first; otherwise oldest first
}

func (q *Query) values() url.Values {
	v := url.Values{"agents": {"0"}}
	for name, value := range map[string]string{"project": q.Project, "since": q.Since, "text": q.Text,
		"parent": q.Parent, "user": q.User} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Machine != nil {
		v.Set("machine", *q.Machine)
	}
	if q.Agents || q.Parent != "" {
		v.Set("agents", "1")
	}
	if q.Recent {
		v.Set("order", "recent")
	}
	return v
}

// Sessions calls f for every session that q selects, until f returns false.
func (c *Client) Sessions(ctx context.Context, q Query, page int, f func(*Session) bool) error {
	v := q.values()
	v.Set("limit", strconv.Itoa(min(max(page, 1), maxPage)))
	type found struct {
		Sessions []Session `json:"sessions"`
		Next     *string   `json:"next"`
	}
	return pages(ctx, c, listing{"/api/sessions", v, "after"}, func(a *found) (*string, int) {
		for i := range a.Sessions {
			if !f(&a.Sessions[i]) {
				return nil, 0
			}
		}
		return a.Next, len(a.Sessions)
	})
}

// Session returns one transcript with its epochs, newest first, and the generations of one epoch.
func (c *Client) Session(ctx context.Context, ref Ref) (Session, error) {
	ref.Generation = nil
	var s Session
	err := c.get(ctx, ref.path(""), ref.query(), &s)
	return s, err
}

// Entry is one line.
type Entry struct {
	Line       int64           `json:"line_index"`
	Generation int64           `json:"generation"`
	Kind       string          `json:"kind"`   // "object", "opaque" or "oversize"
	Record     json.RawMessage `json:"record"` // of an object of at most mostOfLine bytes
	Data       []byte          `json:"data"`   // of an opaque line
}

// mostOfLine is the longest line whose record is asked for: a server would hold a huge one for a few of its words.
const mostOfLine = 4 << 20

// Entries calls f for the lines of a view after line after (-1: all lines), up to its end.
func (c *Client) Entries(ctx context.Context, ref Ref, after int64, f func(*Entry)) error {
	return c.entries(ctx, ref, linesAfter(ref, after, maxPage), f)
}

// entries calls f for the entries that a query selects.
func (c *Client) entries(ctx context.Context, ref Ref, q url.Values, f func(*Entry)) error {
	type found struct {
		Entries []Entry `json:"entries"`
		Cursor  *string `json:"cursor"`
		Next    *int64  `json:"next"`
	}
	return pages(ctx, c, listing{ref.path("entries"), q, "cursor"}, func(a *found) (*string, int) {
		for i := range a.Entries {
			f(&a.Entries[i])
		}
		if a.Next == nil {
			return nil, 0
		}
		return a.Cursor, len(a.Entries)
	})
}

// Ranked is a page of sessions that a search found, and RankedSession one of them.
type (
	Ranked        = protocol.Found[Session]
	RankedSession = protocol.FoundSession[Session]
)

// Find is what to search for.
type Find struct {
	Text   string // in the language of server.Query
	Limit  int    // sessions; 0: what the server gives
	Each   int    // lines of each; 0: what the server gives
	Facets bool
	After  string // Next of the page before
}

// Search finds sessions.
func (c *Client) Search(ctx context.Context, f Find) (found Ranked, err error) {
	q := url.Values{"q": {f.Text}, "zone": {time.Now().Format("Z07:00")}}
	for name, n := range map[string]int{"limit": f.Limit, "each": f.Each} {
		if n > 0 {
			q.Set(name, strconv.Itoa(n))
		}
	}
	if f.Facets {
		q.Set("facets", "1")
	}
	if f.After != "" {
		q.Set("after", f.After)
	}
	for range searchTries {
		if err := c.get(ctx, "/api/search", q, &found); err != nil || len(found.Sessions) > 0 || !found.More ||
			found.Next == nil {
			return found, err
		}
		q.Set("after", *found.Next)
		found = Ranked{}
	}
	return found, nil
}

// searchTries is how often a search goes on that the server ended before it found anything.
const searchTries = 10

// Forgotten is a session that the server has removed.
type Forgotten struct {
	SessionID string    `json:"session_id"`
	At        time.Time `json:"at"`
	Lines     int64     `json:"lines_removed"`
}

// Forget removes the caller's session with its agents from the server for good. CodeNoSession: it had none.
func (c *Client) Forget(ctx context.Context, session string) (Forgotten, error) {
	var a Forgotten
	err := c.document(ctx, http.MethodDelete, Ref{Session: session}.path(""), Ref{User: Me}.query(), nil, &a)
	if err == nil && a.SessionID != session {
		err = noReading(errors.New("another program answers in its place"))
	}
	return a, err
}

// Drop is a rewrite that took lines out of a file.
type Drop struct {
	Session    Session `json:"session"`
	Epoch      string  `json:"epoch"`
	Generation int64   `json:"generation"` // the generation that it began
	Lines      int64   `json:"lines"`      // how many
}

// Drops lists the newest rewrites of a session of the caller's that took lines out. lagging: the server has not looked
// at all of its lines yet, and may answer something else soon.
func (c *Client) Drops(ctx context.Context, session string) (drops []Drop, lagging bool, err error) {
	var a struct {
		Drops   []Drop `json:"drops"`
		Lagging bool   `json:"lagging"`
	}
	err = c.get(ctx, "/api/drops", url.Values{"session": {session}, "user": {Me}, "limit": {strconv.Itoa(maxPage)}}, &a)
	return a.Drops, a.Lagging, err
}

// Machine is a machine whose sessions the server has.
type Machine struct {
	Machine string `json:"machine"`
	Host    string `json:"host"`
}

// Machines lists the machines whose sessions the key's user may see, once for each of their host names.
func (c *Client) Machines(ctx context.Context) ([]Machine, error) {
	seen := map[Machine]bool{}
	var all []Machine
	type found struct {
		Groups []Machine `json:"groups"`
		Next   string    `json:"next"`
	}
	q := url.Values{"limit": {strconv.Itoa(maxPage)}}
	err := pages(ctx, c, listing{"/api/groups", q, "after"}, func(a *found) (*string, int) {
		for _, m := range a.Groups {
			if !seen[m] {
				seen[m] = true
				all = append(all, m)
			}
		}
		if a.Next == "" {
			return nil, 0
		}
		return &a.Next, len(a.Groups)
	})
	return all, err
}

// Forgotten lists the sessions that the server has removed.
func (c *Client) Forgotten(ctx context.Context) ([]Forgotten, error) {
	var a struct {
		Forgotten []Forgotten `json:"forgotten"`
	}
	err := c.get(ctx, "/api/forgotten", nil, &a)
	return a.Forgotten, err
}

// Window returns up to limit lines of a view that follow line after (-1: from the first).
func Window(ctx context.Context, c *Client, ref Ref, after int64, limit int) ([]Entry, error) {
	var a struct {
		Entries []Entry `json:"entries"`
	}
	err := c.get(ctx, ref.path("entries"), linesAfter(ref, after, limit), &a)
	return a.Entries, err
}

// linesAfter asks for up to limit lines of a view that follow line after.
func linesAfter(ref Ref, after int64, limit int) url.Values {
	q := ref.query()
	q.Set("limit", strconv.Itoa(min(max(limit, 1), maxPage)))
	q.Set("most", strconv.Itoa(mostOfLine))
	if after >= 0 {
		q.Set("after", strconv.FormatInt(after, 10))
	}
	return q
}

// Moment is one entry of a session's timeline.
type Moment struct {
	Line int64 `json:"line_index"`
	session.Moment
	URL string `json:"url"`
}

// Timeline calls f for what happened in a session, in the order of its lines. kinds is a list with commas; "" is all.
// read is how many of lines the server has looked at.
func Timeline(ctx context.Context, c *Client, ref Ref, kinds string,
	f func(*Moment)) (read, lines int64, err error) {
	q := ref.query()
	q.Set("limit", strconv.Itoa(maxPage))
	if kinds != "" {
		q.Set("kind", kinds)
	}
	type found struct {
		Session Session  `json:"session"`
		Moments []Moment `json:"moments"`
		Read    int64    `json:"lines_read"`
		Next    *string  `json:"next"`
	}
	err = pages(ctx, c, listing{ref.path("timeline"), q, "after"}, func(a *found) (*string, int) {
		read, lines = a.Read, a.Session.Lines
		for i := range a.Moments {
			f(&a.Moments[i])
		}
		return a.Next, len(a.Moments)
	})
	return read, lines, err
}
