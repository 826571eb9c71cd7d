package api

import (
	"time"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/recall"
	"github.com/ccship/ccship/transcript/session"
)

// linkAnswer is where a browser shows a line of a session.
type linkAnswer func(x server.Session, line int64) string

// moment is one entry of a timeline.
type moment struct {
	Line int64 `json:"line_index"`
	session.Moment
	URL string `json:"url"`
}

// timelineAnswer is a page of a timeline.
type timelineAnswer struct {
	Session sessionAnswer `json:"session"`
	Moments []moment      `json:"moments"`
	Read    int64         `json:"lines_read"` // of the session's lines
	Next    *string       `json:"next"`       // null on the last page
}

// timelineAnswerOf is how a page of a timeline is shown.
func timelineAnswerOf(t recall.Timeline, names namesOf, link linkAnswer) timelineAnswer {
	a := timelineAnswer{Session: sessionAnswerOf(t.Session, names), Moments: []moment{}, Read: t.Read}
	for _, m := range t.Moments {
		a.Moments = append(a.Moments, moment{m.Line, m, link(t.Session, m.Line)})
	}
	if t.Next != "" {
		a.Next = &t.Next
	}
	return a
}

func promptOf(x server.Session, m *session.Moment, link linkAnswer) *moment {
	if m == nil {
		return nil
	}
	return &moment{m.Line, *m, link(x, m.Line)}
}

// touch is a turn that touched a file.
type touch struct {
	Session sessionAnswer `json:"session"`
	Title   string        `json:"title"`
	Line    int64         `json:"line_index"`
	Time    *time.Time    `json:"time"`
	Kind    string        `json:"kind"`
	Path    string        `json:"path"`
	Edits   int           `json:"edits"`
	Reads   int           `json:"reads"`
	Prompt  *moment       `json:"prompt"` // null: none is known
	URL     string        `json:"url"`
}

// touchesAnswer are the turns that touched a file.
type touchesAnswer struct {
	Turns []touch `json:"turns"`
	More  bool    `json:"more"`
}

// blameAnswer is how turns that touched a file are shown.
func blameAnswer(turns []recall.Touch, more bool, names namesOf, link linkAnswer) touchesAnswer {
	a := touchesAnswer{[]touch{}, more}
	for _, t := range turns {
		a.Turns = append(a.Turns, touch{
			Session: sessionAnswerOf(t.Session, names), Title: t.Summary.Title, Line: t.Line, Time: timeAnswer(t.Time),
			Kind: t.Kind,
			Path: t.Path, Edits: t.Edits, Reads: t.Reads, Prompt: promptOf(t.Session, t.Prompt, link),
			URL: link(t.Session, t.Line),
		})
	}
	return a
}

// step is a tool call.
type step struct {
	Line   int64      `json:"line_index"`
	Time   *time.Time `json:"time"`
	Kind   string     `json:"kind"`
	Text   string     `json:"text"`
	Failed bool       `json:"failed"`
	URL    string     `json:"url"`
}

// episode is an error, and what was done about it.
type episode struct {
	Session sessionAnswer `json:"session"`
	Title   string        `json:"title"`
	Line    int64         `json:"line_index"`
	Time    *time.Time    `json:"time"`
	Snippet []pieceAnswer `json:"snippet"`
	Prompt  *moment       `json:"prompt"`
	Call    *step         `json:"call"`
	Again   int           `json:"again"`
	Steps   []step        `json:"steps"`
	Success *step         `json:"success"`
	Outcome string        `json:"outcome"`
	Cut     bool          `json:"cut"`
	URL     string        `json:"url"`
}

// episodesAnswer are errors, and what was done about each.
type episodesAnswer struct {
	Episodes []episode `json:"episodes"`
}

// fixAnswer is how episodes are shown.
func fixAnswer(list []recall.Episode, names namesOf, link linkAnswer) episodesAnswer {
	a := episodesAnswer{[]episode{}}
	for i := range list {
		a.Episodes = append(a.Episodes, episodeOf(&list[i], names, link))
	}
	return a
}

func episodeOf(e *recall.Episode, names namesOf, link linkAnswer) episode {
	call := func(c *recall.Step) *step {
		if c == nil {
			return nil
		}
		return &step{c.Line, timeAnswer(c.At), c.Kind, c.Text, c.Failed, link(e.Session, c.Line)}
	}
	a := episode{
		Session: sessionAnswerOf(e.Session, names), Title: e.Summary.Title, Line: e.Line, Time: timeAnswer(e.Time),
		Snippet: piecesAnswer(e.Snippet), Prompt: promptOf(e.Session, e.Prompt, link), Call: call(e.Call), Again: e.Again,
		Steps: []step{}, Success: call(e.Success), Outcome: e.Outcome, Cut: e.Cut, URL: link(e.Session, e.Line),
	}
	for i := range e.Steps {
		a.Steps = append(a.Steps, *call(&e.Steps[i]))
	}
	return a
}
