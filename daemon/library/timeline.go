package library

import (
	"context"
	"slices"
	"strings"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/transcript/session"
)

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
