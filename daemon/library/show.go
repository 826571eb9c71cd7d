package library

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// Shown is a session and the end of its conversation.
type Shown struct {
	SchemaVersion int `json:"schema_version"`
	Item
	Lines       int64        `json:"lines"`
	Model       string       `json:"model,omitempty"`
	Branch      string       `json:"branch,omitempty"`
	StartedAt   *time.Time   `json:"started_at,omitempty"`
	ForkedFrom  string       `json:"forked_from,omitempty"` // the session whose history this one begins with
	Generations []Generation `json:"generations"`           // on the server, the oldest first
	Last        []Message    `json:"last"`                  // messages, the newest last
	// Commits that `ccship why` was asked about, the newest first.
	Commits []protocol.CommitShare `json:"commits,omitempty"`
	// Retention is nil where no rule of the server is about the session.
	Retention *remote.Retention `json:"retention,omitempty"`
}

// Generation is one version of a transcript.
type Generation struct {
	Generation int64     `json:"generation"`
	RewoundTo  int64     `json:"rewound_to"` // its first line; earlier lines come from older generations
	Lines      int64     `json:"lines"`
	ReceivedAt time.Time `json:"received_at"`
}

// Message is one message of a conversation, in short.
type Message struct {
	// Kind is that of a session.Message: user, assistant, tool_start, tool_complete, error, result, command, compaction,
	// cleared or interrupted.
	Kind string     `json:"kind"`
	Line int64      `json:"line"`
	At   *time.Time `json:"at,omitempty"`
	Text string     `json:"text"`
}

// View says which part of a session to show.
type View struct {
	User       string // whose session; "": the only one's who has it
	Machine    string
	Generation *int64 // nil: the newest
	Messages   int    // at most
}

// tailLines is how many lines of a transcript are read to find its last messages.
const tailLines = 600

// Show returns a session from the server, or from disk if the server does not have it.
func (l *Library) Show(ctx context.Context, session string, v View) (Shown, error) {
	f, err := l.Find(ctx, session)
	if err != nil {
		return Shown{}, err
	}
	if len(f.Stored) == 0 && v.Generation == nil && v.Machine == "" && len(f.Files) > 0 {
		return l.showFile(ctx, f.Files[0], v.Messages)
	}
	s, err := l.stored(ctx, f, Copy{v.Machine, v.User})
	if err != nil {
		return Shown{}, err
	}
	ref := remote.Ref{Session: s.SessionID, User: s.User, Machine: &s.Machine}
	full, err := l.Server.Session(ctx, ref)
	if err != nil {
		return Shown{}, err
	}
	full.Agents = s.Agents
	out := Shown{
		SchemaVersion: control.SchemaVersion, Item: l.item(&full, bySession(f.Files)), Lines: full.Lines,
		Model: full.Summary.Model, Branch: full.Summary.Branch,
		StartedAt: full.Summary.Started, ForkedFrom: full.ForkedFrom, Commits: full.Commits,
		Generations: []Generation{}, Last: []Message{},
	}
	if full.Retention != (remote.Retention{}) {
		out.Retention = &full.Retention
	}
	for _, g := range full.Generations {
		out.Generations = append(out.Generations, Generation{g.Generation, g.RewoundTo, g.EndLine, g.First})
	}
	end, err := viewEnd(&full, v.Generation)
	if err != nil {
		return Shown{}, err
	}
	ref.Generation = v.Generation
	if v.Generation != nil {
		out.Generation, out.Lines = *v.Generation, end
	}
	var m messages
	err = l.Server.Entries(ctx, ref, end-tailLines-1, func(e *remote.Entry) { m.add(e.Line, e.Record) })
	if err != nil {
		return Shown{}, err
	}
	out.Last = m.last(v.Messages)
	return out, nil
}

// viewEnd returns how many lines a generation's view has.
func viewEnd(s *remote.Session, generation *int64) (int64, error) {
	var newest int64
	for _, g := range s.Generations {
		if generation != nil && g.Generation == *generation {
			return g.EndLine, nil
		}
		newest = g.EndLine
	}
	if generation != nil {
		return 0, noGeneration(s.SessionID, *generation)
	}
	return newest, nil
}

func noGeneration(session string, generation int64) error {
	return control.NewError("no_generation", fmt.Sprintf("the server has no generation %d of session %s", generation,
		session),
		"`ccship show "+session+"` lists them")
}

// showFile returns a session that is only on disk. All of it is read, and its agents' transcripts.
func (l *Library) showFile(ctx context.Context, file File, most int) (Shown, error) {
	agents := agents{}.of(file)
	c, err := l.count(ctx, file, agents)
	if err != nil {
		return Shown{}, err
	}
	h := readHead(file.Path)
	item := l.fileItem(&h, activeFile{file, file.active()}, len(agents))
	out := Shown{SchemaVersion: control.SchemaVersion, Item: item, Lines: c.Lines, Model: c.Model, Branch: c.Branch,
		ForkedFrom: c.ForkedFrom, Generations: []Generation{}}
	out.count(c)
	if !c.Started.IsZero() {
		out.StartedAt = &c.Started
	}
	out.Last, err = lastMessages(file, c.Lines, most)
	return out, err
}

// lastMessages reads the end of a transcript of some lines.
func lastMessages(file File, lines int64, most int) ([]Message, error) {
	text, skipped, err := endOf(file.Path, 4<<20)
	if err != nil {
		return nil, err
	}
	var m messages
	n := max(0, lines-int64(bytes.Count(text, []byte("\n"))))
	for line := range bytes.Lines(text) {
		if !skipped { // else it is the end of a line
			m.add(n, bytes.TrimSuffix(line, []byte("\n")))
		}
		skipped = false
		n++
	}
	return m.last(most), nil
}

// messages folds lines into messages.
type messages struct {
	session session.Fold
	log     session.Log
}

func (m *messages) add(line int64, raw []byte) {
	for _, r := range transcript.Records(raw) {
		for _, e := range m.session.Add(line, r) {
			m.log.Add(e)
		}
	}
}

// last returns up to n messages, the newest last.
func (m *messages) last(n int) []Message {
	out := []Message{}
	for _, x := range m.log.Messages(n, 0) {
		out = append(out, messageOf(&x))
	}
	return out
}

// messageOf returns a message in short.
func messageOf(x *session.Message) Message {
	message := Message{Kind: string(x.Kind), Line: x.Line, Text: x.Content}
	switch x.Kind {
	case session.ToolStartMessage:
		message.Text = x.ToolName + " " + transcript.ToolSummary(x.ToolName, x.ToolInput, 120)
	case session.ToolCompleteMessage:
		message.Text = x.ToolName + ": " + cmp.Or(x.Error, x.Output, "(no output)")
	case session.ResultMessage:
		message.Text = x.Duration.Round(time.Second).String()
	case session.ErrorMessage:
		message.Text = cmp.Or(x.Error, x.Content)
	case session.CompactionMessage:
		message.Text = describeCompaction(&x.Compact)
	case session.ClearedMessage:
		message.Text = "the context; the conversation goes on"
	case session.InterruptedMessage:
		message.Text = "by the user"
	}
	if !x.Time.IsZero() {
		message.At = &x.Time
	}
	return message
}

// describeCompaction returns why the conversation was compacted, and the tokens in use before and after, if recorded.
func describeCompaction(c *transcript.Compact) string {
	var parts []string
	if c.Trigger != "" {
		parts = append(parts, c.Trigger)
	}
	if c.Pre > 0 {
		parts = append(parts, fmt.Sprintf("at %d tokens", c.Pre))
	}
	if c.Pre > 0 && c.Post > 0 {
		parts = append(parts, fmt.Sprintf("%d left", c.Post))
	}
	return strings.Join(parts, ", ")
}

// Export writes one copy of a session in one of the server's formats: md, html, json or jsonl.
func (l *Library) Export(ctx context.Context, session string, which Copy, format string, w io.Writer) error {
	f, err := l.Find(ctx, session)
	if err != nil {
		return err
	}
	s, err := l.stored(ctx, f, which)
	if err != nil {
		return err
	}
	file, err := l.Server.Export(ctx, remote.Ref{Session: s.SessionID, User: s.User, Machine: &s.Machine}, format)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := io.Copy(w, file); err != nil {
		return fmt.Errorf("export %s: %w", s.SessionID, err)
	}
	return nil
}

// Timeline is what happened in a session.
type Timeline struct {
	SchemaVersion int `json:"schema_version"`

	Session string   `json:"session"`
	Source  string   `json:"source"` // "local": read from disk; "server"
	Moments []Moment `json:"moments"`
	// Read is how many of Lines were looked at: the server may be behind.
	Read  int64 `json:"lines_read"`
	Lines int64 `json:"lines"`
}

// Moment is one entry of a timeline.
type Moment struct {
	Line int64 `json:"line"`
	session.Moment
	URL string `json:"url,omitempty"`
}

// TimelineKinds returns the kinds of moments.
func TimelineKinds() []string {
	var out []string
	for _, k := range session.MomentKinds() {
		out = append(out, string(k))
	}
	return out
}

// Timeline returns what happened in a session: from disk if its transcript is there and no other copy is asked for,
// else from the server. kinds narrows it unless it is empty. marks, which may be nil, are the checkpoints that a
// transcript on disk does not have.
func (l *Library) Timeline(ctx context.Context, session string, which Copy, kinds []string,
	marks func(session string) []Moment) (Timeline, error) {
	f, err := l.Find(ctx, session)
	if err != nil {
		return Timeline{}, err
	}
	if len(f.Files) > 0 && which == (Copy{}) {
		t, err := timelineOnDisk(ctx, f.Files[0])
		if marks != nil && err == nil {
			t.add(marks(f.Session))
		}
		t.Moments = slices.DeleteFunc(t.Moments, func(m Moment) bool {
			return len(kinds) > 0 && !slices.Contains(kinds, string(m.Kind))
		})
		return t, err
	}
	s, err := l.stored(ctx, f, which)
	if err != nil {
		return Timeline{}, err
	}
	t := Timeline{SchemaVersion: control.SchemaVersion, Session: s.SessionID, Source: OnServer, Moments: []Moment{}}
	ref := remote.Ref{Session: s.SessionID, User: s.User, Machine: &s.Machine}
	t.Read, t.Lines, err = remote.Timeline(ctx, l.Server, ref, strings.Join(kinds, ","), func(m *remote.Moment) {
		t.Moments = append(t.Moments, Moment{m.Line, m.Moment, m.URL})
	})
	return t, err
}

// timelineOnDisk reads a transcript, line by line.
func timelineOnDisk(ctx context.Context, file File) (Timeline, error) {
	out := Timeline{
		SchemaVersion: control.SchemaVersion, Session: file.Session, Source: OnDisk, Moments: []Moment{},
	}
	var t session.TimelineReader
	err := eachLine(ctx, file.Path, func(line []byte, whole bool) error {
		if !whole { // it is still being written
			return nil
		}
		if len(line) > maxLine { // nobody reads it
			line = nil
		}
		t.Line(out.Lines, line)
		out.Lines++
		return nil
	})
	if err != nil {
		return out, err
	}
	out.Read = out.Lines
	for _, m := range t.Moments() {
		out.Moments = append(out.Moments, Moment{Line: m.Line, Moment: m})
	}
	return out, nil
}

// add puts marks between the moments, by their times.
func (t *Timeline) add(marks []Moment) {
	for _, m := range marks {
		i := slices.IndexFunc(t.Moments, func(x Moment) bool { return m.At.Before(x.At) })
		if i < 0 {
			i = len(t.Moments)
		}
		if i > 0 {
			m.Line, m.Turn = t.Moments[i-1].Line, t.Moments[i-1].Turn
		}
		t.Moments = slices.Insert(t.Moments, i, m)
	}
}
