package web

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
	"github.com/ccship/ccship/transcript/session"
)

// lastPart is behind every moment of a line.
const lastPart = ".1000000000"

// moments lists what happened behind a position, which is a Next, a line's number or the beginning, in at most
// thread.MaxPrompts rows, and pins s to its machine. short leaves out tool calls and commands; read is how many lines
// are derived.
func (v *Viewer) moments(ctx context.Context, scope server.Scope, s *thread.Stream, after string,
	short bool) (rows []thread.Prompt, next string, read int64, err error) {
	q := derive.TimelineQuery{Ref: s.Ref(), After: after, Limit: thread.MaxPrompts}
	switch line, err := strconv.ParseInt(after, 10, 64); {
	case err == nil && line < 0: // before the first
		q.After = ""
	case err == nil:
		q.After += lastPart
	}
	for _, k := range session.MomentKinds() {
		if !short || k != session.TimelineTool && k != session.TimelineCommand {
			q.Kinds = append(q.Kinds, k)
		}
	}
	t, err := derive.TimelineOf(ctx, v.store, scope, q)
	if err != nil {
		return nil, "", 0, err
	}
	s.Pin(t.Session)
	for i := range t.Moments {
		m := &t.Moments[i]
		m.Running = m.Running && v.Now().Sub(t.Session.Active) < silence
		row := outlineRow(*s, m)
		row.URL = v.Base + row.URL
		rows = append(rows, row)
	}
	return rows, t.Next, t.Read, nil
}

func outlineRow(s thread.Stream, m *session.Moment) thread.Prompt {
	x := thread.Prompt{Line: m.Line, URL: s.LinePath(m.Line), Time: m.At, Text: m.Text, Tag: tag(m)}
	if m.Kind != session.TimelinePrompt && m.Kind != session.TimelineTask {
		x.Kind = string(m.Kind)
	}
	if x.Kind != "" && m.Tool != "" {
		what := strings.TrimSuffix(strings.TrimPrefix(m.Text, "<tool_use_error>"), "</tool_use_error>")
		if strings.HasPrefix(what, "/") && !strings.Contains(what, " ") {
			what = page.ShortPath(what, 40)
		}
		x.Text = strings.TrimSuffix(m.Tool+": "+what, ": ")
	}
	if m.Agent != "" {
		x.URL = s.Agent(m.Agent).Path("")
	}
	return x
}

// tag says how long a moment took, and how much of it was waiting for the user.
func tag(m *session.Moment) string {
	var parts []string
	switch {
	case m.Kind == session.TimelinePrompt && m.From != "":
		parts = append(parts, "via "+m.From)
	case m.Kind == session.TimelineMessage:
		parts = append(parts, cmp.Or(m.From, "Claude Code"))
	}
	if m.Queued {
		parts = append(parts, "queued")
	}
	if m.Running && m.Kind == session.TimelineAgent {
		parts = append(parts, "running")
	}
	if m.Took >= 1000 {
		text := page.Duration(time.Duration(m.Took) * time.Millisecond)
		if m.MayWait { // for a permission, meanwhile: the transcript does not say
			text = "up to " + text
		}
		parts = append(parts, text)
	}
	if m.Waited >= 1000 {
		parts = append(parts, "waited "+page.Duration(time.Duration(m.Waited)*time.Millisecond)+" for you")
	}
	if m.Before > 0 {
		text := page.Tokens(m.Before) + " tokens"
		if m.After > 0 {
			text = page.Tokens(m.Before) + " → " + page.Tokens(m.After) + " tokens"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " · ")
}
