package daemon

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

const (
	rewritesName  = "drops"            // of the list in the state
	rewriteKept   = 3 * 24 * time.Hour // how long a rewrite is shown
	maxRewrites   = 100                // the oldest go
	rewritesShown = 5                  // in status, the newest
)

// rewrite is a rewind that may have taken lines out of a file. Most rewinds write the same lines again.
type rewrite struct {
	File       tail.FileID `json:"file"`
	Session    string      `json:"session"`
	Project    string      `json:"project"`
	Generation uint32      `json:"generation"` // that had the lines
	Next       uint32      `json:"next"`       // that began with the rewind
	From       int64       `json:"from"`       // the lines that were rewound: [From, To)
	To         int64       `json:"to"`
	At         time.Time   `json:"at"`
	Lines      int64       `json:"lines"` // of them missing now; 0: not counted yet

	askAt time.Time     // not before; zero: at once
	wait  time.Duration // before askAt
}

// rewrites are the recent ones. They are kept in the state. Safe for concurrent use.
type rewrites struct {
	db   *state.DB
	kept *state.Persisted[[]rewrite] // list as it was stored last

	mu    sync.Mutex
	list  []rewrite // oldest first; guarded by mu
	dirty bool      // changed since it was stored; guarded by mu
}

// loadRewrites reads the list that the state keeps.
func loadRewrites(ctx context.Context, db *state.DB) (*rewrites, error) {
	kept, err := state.LoadPersisted[[]rewrite](ctx, db, rewritesName)
	if err != nil {
		return nil, fmt.Errorf("load rewrites: %w", err)
	}
	return &rewrites{db: db, kept: kept, list: slices.Clone(kept.Get())}, nil
}

// Committed notes the rewind at the start of a durable chunk, if there is one. It writes nothing, because the caller is
// in the middle of reading.
func (l *rewrites) Committed(c *tail.Chunk, d *route.Decision) {
	if c.From == c.Prev || d.DestinationChanged || c.File.Kind == tail.History || c.Prev.Line <= c.From.Line {
		return
	}
	f := &d.Facts
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, rewrite{
		File: c.File.ID, Session: f.Stream.SessionID, Project: f.Stream.Project,
		Generation: c.Prev.Generation, Next: c.From.Generation,
		From: c.From.Line, To: c.Prev.Line, At: time.Now().UTC().Round(0),
	})
	l.list = l.list[max(0, len(l.list)-maxRewrites):]
	l.dirty = true
}

// Forget removes the rewrites of a session and its agents.
func (l *rewrites) Forget(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.list)
	l.list = slices.DeleteFunc(l.list, func(x rewrite) bool {
		return slices.Contains(transcript.ForgetNames(x.Session), session)
	})
	l.dirty = l.dirty || len(l.list) != before
}

// Store removes old rewrites, and writes the list if it changed.
func (l *rewrites) Store(ctx context.Context, now time.Time) error {
	l.mu.Lock()
	before := len(l.list)
	l.list = slices.DeleteFunc(l.list, func(x rewrite) bool { return now.Sub(x.At) > rewriteKept })
	if !l.dirty && len(l.list) == before {
		l.mu.Unlock()
		return nil
	}
	list := slices.Clone(l.list)
	l.dirty = false
	l.mu.Unlock()
	if err := l.kept.Change(ctx, func([]rewrite) ([]rewrite, bool) { return list, true }); err != nil {
		l.mu.Lock()
		l.dirty = true
		l.mu.Unlock()
		return fmt.Errorf("store rewrites: %w", err)
	}
	return nil
}

// Advice describes the newest rewrites that took lines out, and says how to get the lines back.
func (l *rewrites) Advice() (out []control.Advice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	more := 0
	for _, x := range slices.Backward(l.list) {
		switch {
		case x.Lines == 0:
			continue
		case len(out) == rewritesShown:
			more++
			continue
		}
		lines := "1 line"
		if x.Lines > 1 {
			lines = fmt.Sprintf("%d lines", x.Lines)
		}
		out = append(out, control.Advice{
			Kind: "dropped_lines",
			Text: fmt.Sprintf("a rewrite took %s out of session %s (%s) at %s",
				lines, x.Session[:min(8, len(x.Session))], x.Project, x.At.Local().Format("2006-01-02 15:04")),
			Hint: fmt.Sprintf("ccship restore %s --generation %d --to FILE gets the earlier transcript",
				x.Session, x.Generation),
		})
	}
	if more > 0 {
		text := "1 more rewrite took lines out"
		if more > 1 {
			text = fmt.Sprintf("%d more rewrites took lines out", more)
		}
		out = append(out, control.Advice{
			Kind: "dropped_lines", Text: text, Hint: "the server's viewer shows all of them",
		})
	}
	return out
}
