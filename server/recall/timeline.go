package recall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/session"
)

// maxMarks is how many checkpoints of a session a timeline shows, the latest.
const maxMarks = 1000

// TimelineQuery chooses a page of a session's timeline.
type TimelineQuery struct {
	Ref   server.Ref
	Kinds []session.MomentKind // none: all
	After string               // Next of the page before
	Limit int
}

// Timeline is a page of what happened in a session, in the order of its lines.
type Timeline struct {
	Session server.Session
	Moments []session.Moment
	Next    string // "" on the last page
	Read    int64  // lines of the file that are derived
}

// TimelineOf returns a page of a session's timeline, as its newest view has it. server.ErrBadPage for an After that
// is none.
func TimelineOf(ctx context.Context, st Store, scope server.Scope, q TimelineQuery) (out Timeline, err error) {
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
func sessionOf(ctx context.Context, st Store, scope server.Scope, ref server.Ref) (server.Session, error) {
	snap, err := st.View(ctx, scope, ref)
	if err != nil {
		return server.Session{}, err
	}
	x := snap.Session()
	return x, snap.Close()
}

// fill reads the page: moments of the transcript, and between them by their times what the server knows besides.
func (t *Timeline) fill(ctx context.Context, st Store, q TimelineQuery, after *server.Moment) error {
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
	t.Moments = Merge(list, marks)
	return nil
}

// marks returns the checkpoints of a session, and the documents that others than Claude linked to it: a
// transcript has only what Claude linked.
func (t *Timeline) marks(ctx context.Context, st Store, q TimelineQuery) (out []session.Moment, err error) {
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

// Merge puts marks between the moments of a transcript, by their times. A mark without a line of its own gets that of
// the moment before it.
func Merge(list, marks []session.Moment) []session.Moment {
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
