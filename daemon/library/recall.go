package library

import (
	"time"

	"github.com/ccship/ccship/daemon/remote"
)

// Turns is the document of `ccship blame --json`.
type Turns struct {
	SchemaVersion int    `json:"schema_version"`
	Turns         []Turn `json:"turns"`
	More          bool   `json:"more"`
}

// Turn is a turn that read or changed a file.
type Turn struct {
	Session string     `json:"session"`
	User    string     `json:"user"` // whose session it is
	Machine string     `json:"machine"`
	Project string     `json:"project"`
	Title   string     `json:"title"`
	Line    int64      `json:"line"` // the newest that did
	At      *time.Time `json:"at"`
	Kind    string     `json:"kind"` // edit, read
	Path    string     `json:"path"`
	Edits   int        `json:"edits"`
	Reads   int        `json:"reads"`
	Prompt  *Moment    `json:"prompt"`
	URL     string     `json:"url"`
}

// BlameOf makes the document of what the server answered.
func BlameOf(schema int, turns []remote.Touch, more bool) Turns {
	out := Turns{SchemaVersion: schema, Turns: []Turn{}, More: more}
	for _, t := range turns {
		out.Turns = append(out.Turns, Turn{Session: t.Session.SessionID, User: t.Session.User, Machine: t.Session.Machine,
			Project: t.Session.Project, Title: t.Title, Line: t.Line, At: t.Time, Kind: t.Kind, Path: t.Path, Edits: t.Edits,
			Reads: t.Reads, Prompt: promptOf(t.Prompt), URL: t.URL})
	}
	return out
}

func promptOf(m *remote.Moment) *Moment {
	if m == nil {
		return nil
	}
	x := momentOf(m)
	return &x
}

// Episodes is the document of `ccship fix --json`.
type Episodes struct {
	SchemaVersion int       `json:"schema_version"`
	Episodes      []Episode `json:"episodes"`
}

// Episode is an error, and what was done about it.
type Episode struct {
	Session string         `json:"session"`
	User    string         `json:"user"` // whose session it is
	Machine string         `json:"machine"`
	Project string         `json:"project"`
	Title   string         `json:"title"`
	Line    int64          `json:"line"`
	At      *time.Time     `json:"at"`
	Outcome string         `json:"outcome"` // fixed, likely_fixed, gone, open
	Snippet []remote.Piece `json:"snippet"`
	Prompt  *Moment        `json:"prompt"`
	Call    *Step          `json:"call"` // that failed
	Again   int            `json:"again"`
	Steps   []Step         `json:"steps"`
	Success *Step          `json:"success"`
	Cut     bool           `json:"cut"` // more of the session was not read
	URL     string         `json:"url"`
}

// Step is a tool call.
type Step struct {
	Line   int64      `json:"line"`
	At     *time.Time `json:"at"`
	Kind   string     `json:"kind"`
	Text   string     `json:"text"`
	Failed bool       `json:"failed"`
	URL    string     `json:"url"`
}

// FixOf makes the document of what the server answered.
func FixOf(schema int, list []remote.Episode) Episodes {
	out := Episodes{SchemaVersion: schema, Episodes: []Episode{}}
	step := func(s *remote.Step) *Step {
		if s == nil {
			return nil
		}
		return &Step{Line: s.Line, At: s.Time, Kind: s.Kind, Text: s.Text, Failed: s.Failed, URL: s.URL}
	}
	for _, e := range list {
		x := Episode{Session: e.Session.SessionID, User: e.Session.User, Machine: e.Session.Machine,
			Project: e.Session.Project, Title: e.Title, Line: e.Line, At: e.Time, Outcome: e.Outcome, Snippet: e.Snippet,
			Prompt: promptOf(e.Prompt), Call: step(e.Call), Again: e.Again, Steps: []Step{},
			Success: step(e.Success), Cut: e.Cut, URL: e.URL}
		for i := range e.Steps {
			x.Steps = append(x.Steps, *step(&e.Steps[i]))
		}
		out.Episodes = append(out.Episodes, x)
	}
	return out
}
