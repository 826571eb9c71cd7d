package derive

import (
	"time"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// Watch sets in facts from which offset on a file's lines count as watched, that is, written while a daemon ran. Call
// it for every chunk before its commit. redelivered says that the lines are delivered again: what was written before
// has no further effects.
func (d *CopyDetector) Watch(f *state.Routing, c *tail.Chunk, redelivered bool) {
	if d.isCopy(c, time.Now()) {
		f.WatchedFrom = max(f.WatchedFrom, c.File.Stat.Size)
	}
	watch(f, c, redelivered)
}

// watch is Watch for a file that is not a copy.
func watch(f *state.Routing, c *tail.Chunk, redelivered bool) {
	switch {
	case c.File.Kind == tail.History:
	case redelivered:
		f.WatchedFrom = max(f.WatchedFrom, c.Prev.Offset)
	case c.From != c.Prev && (!f.Watched || c.From.Offset < f.WatchedFrom):
		// The part that was written before a daemon watched has other text now. As many bytes as there were, and all bytes
		// there are, count as written before: a file that is rewritten in place is empty for a moment.
		f.WatchedFrom = max(c.Prev.Offset, c.File.Stat.Size)
	case !f.Watched && c.To.Offset > max(f.WatchedFrom, c.Before):
		f.Watched, f.WatchedFrom = true, max(f.WatchedFrom, c.Before, c.From.Offset)
	}
}
