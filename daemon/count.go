package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

const (
	settling    = 3 * time.Second // a rewrite may take this long; servers are asked about it later
	longestWait = 5 * time.Minute // between two requests about a rewrite that the server has not derived yet
)

// files are the transcripts on disk; *tail.Tailer is one.
type files interface {
	File(id tail.FileID) (tail.Tracked, bool)
}

// servers are the destinations.
type servers interface {
	// Protocol returns what a server speaks, as in outbox.Health; "" for a server that gets nothing.
	Protocol(dest string) string
	// Reader returns a client of a server's reading API, never nil.
	Reader(dest string) *remote.Client
}

// rewriteCounter finds out how many lines rewrites took out.
type rewriteCounter struct {
	Rewrites *rewrites
	Files    files
	Servers  servers
	Origin   outbox.Origin
}

// Count counts the rewrites that are due, as far as servers can be asked now. An error means that one cannot be asked:
// wait before the next call. That one is not asked about further rewrites: others are.
func (c *rewriteCounter) Count(ctx context.Context, now time.Time) error {
	var errs []error
	failed := map[string]bool{}
	for _, x := range c.Rewrites.due(now) {
		dest, lines, known, err := c.lost(ctx, x, now, failed)
		if err != nil {
			failed[dest] = true
			errs = append(errs, fmt.Errorf("count the lines of a rewrite: %w", err))
		} else if known {
			c.Rewrites.counted(x, lines)
		}
	}
	return errors.Join(errs...)
}

// lost returns how many lines a rewrite took out of its file, and which server it asks; known is false while that is
// not known. It does not ask servers that failed.
func (c *rewriteCounter) lost(ctx context.Context, x rewrite, now time.Time, failed map[string]bool) (
	dest string, lines int64, known bool, err error,
) {
	t, ok := c.Files.File(x.File)
	if !ok || t.Gone != 0 {
		return "", 0, true, nil // the file is gone as a whole
	}
	f, ok, err := c.Rewrites.db.Files.Routing(ctx, x.File)
	if err != nil || !ok {
		return "", 0, !ok, err
	}
	if c.Rewrites.db.Outbox.QueuedEntries(x.File) > 0 || failed[f.Dest] {
		return f.Dest, 0, false, nil
	}
	switch c.Servers.Protocol(f.Dest) {
	case "plain": // keeps no generations: only the sizes can be compared
		return f.Dest, max(0, x.To-t.Cursor.Line), true, nil
	case "ccship":
		lines, known, err = c.ask(ctx, &f, x, now)
	}
	return f.Dest, lines, known, err
}

// ask asks the server what a rewrite took out.
func (c *rewriteCounter) ask(ctx context.Context, f *state.Routing, x rewrite, now time.Time) (
	lines int64, known bool, err error,
) {
	drops, lagging, err := c.Servers.Reader(f.Dest).Drops(ctx, x.Session)
	switch {
	case remote.Is(err, control.CodeUnreachable), remote.Is(err, control.CodeRefusedKey):
		return 0, false, err
	case err != nil: // it accepts lines, but derives nothing from them
		return 0, true, nil //nolint:nilerr // there is no count, and asking again gives none
	case lagging:
		c.Rewrites.postpone(x, now)
		return 0, false, nil
	}
	for _, d := range drops {
		if d.Session.Machine == c.Origin.Machine && d.Epoch == c.Origin.EpochOf(&f.Stream) &&
			d.Generation == int64(x.Next) {
			return d.Lines, true, nil
		}
	}
	return 0, true, nil
}

// due returns a copy of the rewrites to ask about now.
func (l *rewrites) due(now time.Time) (list []rewrite) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.list {
		if x.Lines == 0 && now.Sub(x.At) >= settling && !now.Before(x.askAt) {
			list = append(list, x)
		}
	}
	return list
}

// postpone delays a rewrite that the server has not derived yet, twice as long each time.
func (l *rewrites) postpone(x rewrite, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.list, x); i >= 0 {
		x := &l.list[i]
		x.wait = min(max(2*x.wait, settling), longestWait)
		x.askAt = now.Add(x.wait)
	}
}

// counted records how many lines a rewrite took out. A rewrite that took out none is removed.
func (l *rewrites) counted(x rewrite, lines int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.list, x)
	if i < 0 {
		return
	}
	l.dirty = true
	if l.list[i].Lines = lines; lines == 0 {
		l.list = slices.Delete(l.list, i, i+1)
	}
}
