package derive

import (
	"sync"

	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/redact"
)

// maxClean is the largest number of transcripts in cleanLines.
const maxClean = 4096

// cleanLines remembers where the relay's masker found no secret in a transcript, so that folding does not search these
// lines again. It may forget anything: lines that it does not know are searched. It is safe for concurrent use.
type cleanLines struct {
	mu     sync.Mutex
	ranges map[tail.FileID]cleanRange // guarded by mu
}

// cleanRange is a byte range of a generation in which a masker found nothing.
type cleanRange struct {
	generation uint32
	from, to   int64
	by         *redact.Masker
}

// note records what is known about a committed chunk.
func (x *cleanLines) note(c *tail.Chunk, by *route.Decision) {
	x.mu.Lock()
	defer x.mu.Unlock()
	last, known := x.ranges[c.File.ID]
	if by.CleanBy == nil {
		if known {
			delete(x.ranges, c.File.ID)
		}
		return
	}
	next := cleanRange{c.To.Generation, c.From.Offset, c.To.Offset, by.CleanBy}
	if known && last.by == next.by && last.generation == next.generation && last.to == next.from {
		next.from = last.from
	}
	if x.ranges == nil || !known && len(x.ranges) >= maxClean {
		x.ranges = map[tail.FileID]cleanRange{}
	}
	x.ranges[c.File.ID] = next
}

// of returns what is known of a transcript.
func (x *cleanLines) of(id tail.FileID) cleanRange {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ranges[id]
}

// holds reports whether a masker would find nothing in a line at an offset.
func (r *cleanRange) holds(m *redact.Masker, generation uint32, offset int64) bool {
	return r.by == m && r.generation == generation && offset >= r.from && offset < r.to
}
