package remote

import (
	"context"
	"net/url"
	"strconv"
	"time"
)

// Moment is one entry of a session's timeline.
type Moment struct {
	Line    int64      `json:"line_index"`
	Kind    string     `json:"kind"`
	At      *time.Time `json:"at"`
	Text    string     `json:"text"`
	From    string     `json:"from"` // who sent a message, or the channel of a prompt
	Tool    string     `json:"tool"`
	Turn    int64      `json:"turn"`
	Took    int64      `json:"duration_ms"` // without Waited
	Waited  int64      `json:"waited_ms"`
	MayWait bool       `json:"may_include_waiting"` // Took may have more waiting in it
	Running bool       `json:"running"`
	Queued  bool       `json:"queued"`
	Agent   string     `json:"agent"`
	Before  int64      `json:"tokens_before"`
	After   int64      `json:"tokens_after"`
	URL     string     `json:"url"`
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
	for {
		var a struct {
			Session Session  `json:"session"`
			Moments []Moment `json:"moments"`
			Read    int64    `json:"lines_read"`
			Next    *string  `json:"next"`
		}
		if err := c.get(ctx, ref.path("timeline"), q, &a); err != nil {
			return read, lines, err
		}
		read, lines = a.Read, a.Session.Lines
		for i := range a.Moments {
			f(&a.Moments[i])
		}
		if a.Next == nil {
			return read, lines, nil
		}
		q.Set("after", *a.Next)
	}
}

// Recall is which sessions to look in. The zero value of a field is all.
type Recall struct {
	Kind    string // with commas: edit, read
	Project string
	Session string
	User    string // "": all whose sessions the key's user may see
	Since   string
	Limit   int
}

func (r Recall) query() url.Values {
	q := url.Values{"limit": {strconv.Itoa(r.Limit)}}
	for name, value := range map[string]string{"kind": r.Kind, "project": r.Project, "session": r.Session,
		"since": r.Since, "user": r.User} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

// Touch is a turn that read or changed a file.
type Touch struct {
	Session Session    `json:"session"`
	Title   string     `json:"title"`
	Line    int64      `json:"line_index"` // the newest that did
	Time    *time.Time `json:"time"`
	Kind    string     `json:"kind"` // edit, read
	Path    string     `json:"path"`
	Edits   int        `json:"edits"`
	Reads   int        `json:"reads"`
	Prompt  *Moment    `json:"prompt"` // nil: none is known
	URL     string     `json:"url"`
}

// Blame returns the turns that read or changed a file, newest first, and whether there are more.
func Blame(ctx context.Context, c *Client, file string, r Recall) (turns []Touch, more bool, err error) {
	q := r.query()
	q.Set("file", file)
	var a struct {
		Turns []Touch `json:"turns"`
		More  bool    `json:"more"`
	}
	err = c.get(ctx, "/api/blame", q, &a)
	return a.Turns, a.More, err
}

// Step is a tool call.
type Step struct {
	Line   int64      `json:"line_index"`
	Time   *time.Time `json:"time"`
	Kind   string     `json:"kind"` // edit, command, or another tool's name
	Text   string     `json:"text"`
	Failed bool       `json:"failed"`
	URL    string     `json:"url"`
}

// Episode is an error, and what was done about it.
type Episode struct {
	Session Session    `json:"session"`
	Title   string     `json:"title"`
	Line    int64      `json:"line_index"`
	Time    *time.Time `json:"time"`
	Snippet []Piece    `json:"snippet"`
	Prompt  *Moment    `json:"prompt"`
	Call    *Step      `json:"call"` // that failed
	Again   int        `json:"again"`
	Steps   []Step     `json:"steps"`
	Success *Step      `json:"success"`
	Outcome string     `json:"outcome"` // fixed, likely_fixed, gone, open
	Cut     bool       `json:"cut"`
	URL     string     `json:"url"`
}

// Fix returns where an error occurred, newest first, and what followed until it did not occur again.
func Fix(ctx context.Context, c *Client, text string, r Recall) ([]Episode, error) {
	q := r.query()
	q.Set("q", text)
	var a struct {
		Episodes []Episode `json:"episodes"`
	}
	err := c.get(ctx, "/api/fix", q, &a)
	return a.Episodes, err
}
