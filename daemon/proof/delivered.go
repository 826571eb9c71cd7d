package proof

import (
	"context"
	"time"

	"github.com/ccship/ccship/tail"
)

// Delivered is the transcripts on disk, as far as they were delivered before a comparison. nil: nobody knows.
type Delivered struct {
	files []tail.Tracked
	known map[tail.FileID]bool // before the sync began
}

// restLimit is how long a comparison waits for what came during the sync before it.
const restLimit = time.Minute

// delivered waits until the transcripts are delivered as they are after a sync: sessions go on and begin meanwhile.
// before are those that were known when the sync began.
func (s *Service) delivered(ctx context.Context, deps Deps, before []tail.Tracked) (*Delivered, error) {
	d := &Delivered{files: deps.Files.Files(), known: map[tail.FileID]bool{}}
	for _, t := range before {
		d.known[t.File.ID] = true
	}
	ctx, cancel := context.WithTimeout(ctx, restLimit)
	defer cancel()
	return d, s.Syncer.Drained(ctx, deps.State.Outbox.LastSeq())
}

// began reports whether a transcript that is not delivered began after the sync, which delivers all that it finds.
func (d *Delivered) began(id tail.FileID) bool { return d != nil && !d.known[id] }
