package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/proof"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/outbox"
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

// mostClear is how many transcripts are kept by name; the others are counted.
const mostClear = 100

// inClear is which transcripts servers have with secrets in clear, by the last comparison.
type inClear struct {
	Paths []string `json:"paths"` // at most mostClear
	Total int      `json:"total"`
}

// clearList keeps inClear in the state. Safe for concurrent use.
type clearList struct {
	kept *state.Persisted[inClear]
}

// loadClear reads the list. One that cannot be read begins anew: the next comparison makes it again.
func loadClear(ctx context.Context, db *state.DB) (clearList, error) {
	kept, err := state.LoadPersisted[inClear](ctx, db, "sent_in_clear")
	if err != nil && !errors.Is(err, state.ErrUnreadable) {
		return clearList{}, fmt.Errorf("load what was sent in clear: %w", err)
	}
	return clearList{kept}, nil
}

// note adds transcripts; first: those known before do not count.
func (l clearList) note(ctx context.Context, paths []string, first bool) error {
	return l.kept.Change(ctx, func(old inClear) (inClear, bool) {
		if first {
			next := inClear{Paths: slices.Clone(paths[:min(len(paths), mostClear)]), Total: len(paths)}
			return next, next.Total != old.Total || !slices.Equal(next.Paths, old.Paths)
		}
		next := inClear{Paths: slices.Concat(old.Paths, paths), Total: old.Total + len(paths)}
		next.Paths = next.Paths[:min(len(next.Paths), mostClear)]
		return next, len(paths) > 0
	})
}

// advice names transcripts that a server has with secrets in clear.
func (l clearList) advice() []control.Advice {
	known := l.kept.Get()
	if len(known.Paths) == 0 {
		return nil
	}
	text := "sent before secrets were masked: " + known.Paths[0]
	if more := known.Total - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return []control.Advice{{Kind: "secrets_in_clear", Text: text,
		Hint: "`ccship redact apply --forget-old --yes` has them masked on the server"}}
}

// remaskPage is how many transcripts one request compares.
const remaskPage = 20

// Remask finds the lines that servers have in another form than the masking rules in force produce, and sends them
// again unless the request is a dry run. The first request syncs; the last one also checks documents and attachments
// again.
func (d *Daemon) Remask(ctx context.Context, req control.RemaskRequest) (control.RemaskResult, error) {
	result := control.RemaskResult{SchemaVersion: control.SchemaVersion}
	if d.masking.Mode() == "off" {
		return result, control.Usage("nothing is masked: redact is off", "`ccship config redact on`")
	}
	if req.Offset == 0 { // what is still queued may be in the clear
		synced, err := d.syncer.Sync(ctx, control.SyncRequest{Wait: true})
		if err != nil {
			return result, err
		}
		if !synced.Done {
			return result, proof.SyncError(synced)
		}
	}
	if req.Old {
		return d.remaskOld(ctx, req)
	}
	files := d.tailer.Files()
	slices.SortFunc(files, func(a, b tail.Tracked) int { return cmp.Compare(a.File.Path, b.File.Path) })
	result.Total = len(files)
	from := min(max(0, req.Offset), len(files))
	to := min(from+remaskPage, len(files))
	sum, err := d.reconciler.Remask(ctx, files[from:to], req.DryRun)
	if err != nil {
		return result, err
	}
	result.Transcripts, result.Lines, result.Clear, result.Resent = sum.Transcripts, sum.Lines, sum.Clear, sum.Resent
	if err := d.clear.note(ctx, sum.Paths, from == 0); err != nil {
		return result, err
	}
	if to < len(files) {
		result.Next = to
		return result, nil
	}
	if req.DryRun {
		return result, nil
	}
	if err := d.clear.note(ctx, nil, true); err != nil {
		return result, err
	}
	return result, d.remaskFiles(ctx)
}

// remaskOld masks, or counts, what the servers of the known transcripts have stored in the clear.
func (d *Daemon) remaskOld(ctx context.Context, req control.RemaskRequest) (control.RemaskResult, error) {
	result := control.RemaskResult{SchemaVersion: control.SchemaVersion}
	routings, err := d.db.Files.Routings(ctx)
	if err != nil {
		return result, err
	}
	var dests []string
	for _, f := range routings {
		if f.Decided && f.Dest != "" {
			dests = append(dests, f.Dest)
		}
	}
	slices.Sort(dests)
	old, err := d.remasker.Run(ctx, slices.Compact(dests), req.Offset, req.DryRun)
	result.Old = &old
	return result, err
}

// remaskFiles has documents and attachments read again. A file that is masked differently now becomes a new version.
func (d *Daemon) remaskFiles(ctx context.Context) error {
	d.documents.Recheck()
	for _, dest := range d.db.Outbox.KnownDestinations() {
		if !d.servers.Takes(dest, outbox.Blob) || d.masking.For(dest, "") == nil {
			continue
		}
		if err := d.projections.Attachments.Forget(ctx, dest, 0); err != nil {
			return err
		}
	}
	d.attachments.ListAll()
	return nil
}
