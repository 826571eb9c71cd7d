package delivery

import (
	"context"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// Rows lists a page of what waits in the outbox, by transcript and server. next is the offset of the next page; 0 when
// there is none.
func Rows(ctx context.Context, db *state.DB, p control.Page) (rows []control.OutboxRow, next int, err error) {
	queued := db.Outbox.Queued()
	from := min(p.Offset, len(queued))
	to := min(from+p.Limit, len(queued))
	if to < len(queued) {
		next = to
	}
	queued = queued[from:to]
	var ids []tail.FileID
	for _, q := range queued {
		ids = append(ids, q.File)
	}
	facts, err := db.Files.RoutingsOf(ctx, ids)
	if err != nil {
		return nil, 0, err
	}
	rows = []control.OutboxRow{}
	for _, q := range queued {
		stream, kind := facts[q.File].Stream, "lines"
		if q.Blobs {
			kind = "blobs"
		}
		rows = append(rows, control.OutboxRow{
			Server: project.ServerURL(q.Dest), Session: stream.SessionID, Path: stream.Path, Kind: kind,
			Batches: q.Batches, Entries: q.Entries, Bytes: q.Raw, Stored: q.Bytes, OldestAt: q.Oldest.UTC(),
		})
	}
	return rows, next, nil
}
