package derive

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/provenance"
	"github.com/ccship/ccship/transcript/session"
)

// patience is how long one answer may take.
const patience = 20 * time.Second

// AnswerStore is what answers are read from.
type AnswerStore interface {
	server.Moments
	server.Provenance
	Find(ctx context.Context, scope server.Scope, q server.SessionQuery) (server.Found, error)
	Groups(ctx context.Context, scope server.Scope, q server.GroupQuery) (server.Groups, error)
	View(ctx context.Context, scope server.Scope, ref server.Ref) (server.Snapshot, error)
	SummaryOf(ctx context.Context, stream int64) (server.Summary, error)
	Usage(ctx context.Context, scope server.Scope, q server.UsageQuery) ([]server.UsageRow, error)
	Checkpoints(ctx context.Context, scope server.Scope, q server.CheckpointQuery) (server.CheckpointPage, error)
	Documents(ctx context.Context, scope server.Scope, ref server.Ref) ([]server.Document, error)
}

// within runs fn for as long as an answer may take. server.ErrBusy when that is not enough.
func within(ctx context.Context, fn func(context.Context) error) error {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := fn(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && caller.Err() == nil {
		return fmt.Errorf("answer within %s: %w", patience, server.ErrBusy)
	}
	return err
}

// decode reads moments as they are stored. One that cannot be read is left out: it is derived again some day.
func decode(stored []server.Moment) []session.Moment {
	out := make([]session.Moment, 0, len(stored))
	for _, x := range stored {
		var m session.Moment
		if json.Unmarshal(x.Data, &m) == nil {
			m.Line, m.Part = x.Line, int(x.Part)
			out = append(out, m)
		}
	}
	return out
}

// fileTurns is how many turns of a file are listed.
const fileTurns = 100

// FileQuery asks for the turns that wrote to a file.
type FileQuery struct {
	File    string    // its path below its repository, or an absolute one
	Project string    // of the repository that its project_hash, name or id tells; "": of any
	To      time.Time // not later
	URL     func(x server.Session, line int64) string
}

// FileTurn is a prompt whose turn wrote to a file.
type FileTurn struct {
	Author provenance.Author
	Prompt provenance.Prompt
	Edits  int64
}

// FileTurns lists the turns that wrote to a file, the newest first; more says that there are older ones. What a fork
// repeats is listed once. users are the names of users. server.ErrBusy when the time for an answer does not suffice.
func FileTurns(ctx context.Context, st AnswerStore, scope server.Scope, users func(int64) string, q FileQuery) (
	out []FileTurn, more bool, err error) {
	err = within(ctx, func(ctx context.Context) error {
		w := newWritten(ctx, st, scope, users)
		w.URL = q.URL
		list, err := st.EditsOf(ctx, scope, server.EditQuery{Name: provenance.Name(q.File), Project: q.Project, To: q.To,
			Limit: whyEdits})
		if err != nil {
			return err
		}
		type turn struct {
			session int
			line    int64
		}
		file := strings.ReplaceAll(q.File, `\`, "/")
		names := []string{file, strings.TrimPrefix(file, "/")}
		seen := map[turn]int{}
		more = len(list) == whyEdits
		for _, x := range list {
			if x.Copied || x.Copy || !provenance.SamePath(x.Path, names) {
				continue
			}
			c := w.candidate(x)
			p := w.Prompt(c.Session, &c.Edit)
			k := turn{c.Session, p.Line}
			at, known := seen[k]
			if !known && len(out) == fileTurns {
				more = true
				break
			}
			if !known {
				at, seen[k] = len(out), len(out)
				out = append(out, FileTurn{Author: w.Author(c.Session), Prompt: p})
			}
			out[at].Edits++
		}
		return w.err
	})
	return out, more, err
}

// maxMarks is how many checkpoints of a session a timeline shows, the latest.
const maxMarks = 1000

// TimelineQuery chooses a page of a session's timeline.
type TimelineQuery struct {
	Ref   server.Ref
	Kinds []session.MomentKind // none: all
	After string               // Next of the page before
	Limit int
}

// timeline is a page of what happened in a session, in the order of its lines.
type timeline struct {
	Session server.Session
	Moments []session.Moment
	Next    string // "" on the last page
	Read    int64  // lines of the file that are derived
}

// TimelineOf returns a page of a session's timeline, as its newest view has it. server.ErrBadPage for an After that
// is none.
func TimelineOf(ctx context.Context, st AnswerStore, scope server.Scope, q TimelineQuery) (out timeline, err error) {
	after, err := parsePlace(q.After)
	if err != nil {
		return out, err
	}
	err = within(ctx, func(ctx context.Context) error {
		if out.Session, err = sessionOf(ctx, st, scope, q.Ref); err != nil {
			return err
		}
		facts, err := st.SummaryOf(ctx, out.Session.ID)
		if err != nil {
			return err
		}
		out.Read = facts.Lines
		return out.fill(ctx, st, q, after)
	})
	return out, err
}

// sessionOf finds a session that a scope sees.
func sessionOf(ctx context.Context, st AnswerStore, scope server.Scope, ref server.Ref) (server.Session, error) {
	snap, err := st.View(ctx, scope, ref)
	if err != nil {
		return server.Session{}, err
	}
	x := snap.Session()
	return x, snap.Close()
}

// fill reads the page: moments of the transcript, and between them by their times what the server knows besides.
func (t *timeline) fill(ctx context.Context, st AnswerStore, q TimelineQuery, after *server.Moment) error {
	ask := server.MomentQuery{Owner: t.Session.Owner, Stream: t.Session.ID, After: after, Limit: q.Limit + 1}
	if after != nil {
		ask.From = after.Line
	}
	for _, k := range q.Kinds {
		if k != session.TimelineCheckpoint {
			ask.Kinds = append(ask.Kinds, string(k))
		}
	}
	var list []session.Moment
	if len(q.Kinds) == 0 || len(ask.Kinds) > 0 {
		stored, err := st.Moments(ctx, ask)
		if err != nil {
			return err
		}
		list = decode(stored)
	}
	var until time.Time // of the next page's first moment
	if len(list) > q.Limit {
		until, list = list[q.Limit].At, list[:q.Limit]
		last := list[q.Limit-1]
		t.Next = fmt.Sprintf("%d.%d", last.Line, last.Part)
	}
	marks, err := t.marks(ctx, st, q)
	if err != nil {
		return err
	}
	marks = slices.DeleteFunc(marks, func(m session.Moment) bool {
		before := after != nil && (len(list) == 0 || m.At.Before(list[0].At))
		return before || t.Next != "" && !m.At.Before(until)
	})
	t.Moments = merge(list, marks)
	return nil
}

// marks returns the checkpoints of a session, and the documents that others than Claude linked to it: a
// transcript has only what Claude linked.
func (t *timeline) marks(ctx context.Context, st AnswerStore, q TimelineQuery) (out []session.Moment, err error) {
	all := server.Scope{All: true} // the session is visible; so are its marks
	wanted := func(k session.MomentKind) bool { return len(q.Kinds) == 0 || slices.Contains(q.Kinds, k) }
	if wanted(session.TimelineCheckpoint) {
		page, err := st.Checkpoints(ctx, all, server.CheckpointQuery{Stream: t.Session.ID, Limit: maxMarks})
		if err != nil {
			return nil, err
		}
		for _, c := range page.List {
			out = append(out, session.Moment{Line: c.Line, Kind: session.TimelineCheckpoint, At: c.Created,
				Text: c.Trigger, Before: c.TokensUsed})
		}
	}
	if !wanted(session.TimelineDocument) {
		return out, nil
	}
	documents, err := st.Documents(ctx, all, server.Ref{Stream: t.Session.ID})
	if err != nil && !errors.Is(err, server.ErrNotFound) {
		return nil, err
	}
	for _, d := range documents {
		if d.AddedBy != "claude" && !d.AddedAt.IsZero() {
			out = append(out, session.Moment{Line: -1, Kind: session.TimelineDocument, At: d.AddedAt, Text: "linked " + d.Path})
		}
	}
	return out, nil
}

// merge puts marks between the moments of a transcript, by their times. A mark without a line of its own gets that of
// the moment before it.
func merge(list, marks []session.Moment) []session.Moment {
	slices.SortStableFunc(marks, func(a, b session.Moment) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) })
	out := make([]session.Moment, 0, len(list)+len(marks))
	var line int64
	for _, m := range list {
		for len(marks) > 0 && !m.At.IsZero() && marks[0].At.Before(m.At) {
			out, marks = append(out, placed(marks[0], line)), marks[1:]
		}
		out, line = append(out, m), m.Line
	}
	for _, m := range marks {
		out = append(out, placed(m, line))
	}
	return out
}

func placed(m session.Moment, line int64) session.Moment {
	if m.Line < 0 {
		m.Line = line
	}
	return m
}

// parsePlace reads "line.part"; nil for "".
func parsePlace(text string) (*server.Moment, error) {
	if text == "" {
		return nil, nil
	}
	a, b, ok := strings.Cut(text, ".")
	line, err := strconv.ParseInt(a, 10, 64)
	part, err2 := strconv.ParseInt(b, 10, 64)
	if !ok || err != nil || err2 != nil || line < 0 || part < 0 {
		return nil, server.ErrBadPage
	}
	return &server.Moment{Line: line, Part: part}, nil
}
