package daemon

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// Outbox lists what waits, by transcript and server.
func (d *Daemon) Outbox(ctx context.Context, p control.Page) (control.OutboxList, error) {
	s := d.Status(ctx)
	a := control.OutboxList{
		SchemaVersion: control.SchemaVersion, Outbox: *s.Outbox, Pause: s.Pause, Servers: s.Servers, Rows: []control.OutboxRow{},
	}
	if a.Servers == nil {
		a.Servers = []control.Server{}
	}
	queued := d.db.Queued()
	from := min(p.Offset, len(queued))
	to := min(from+p.Limit, len(queued))
	if to < len(queued) {
		a.Next = to
	}
	var ids []tail.FileID
	for _, q := range queued[from:to] {
		ids = append(ids, q.File)
	}
	facts, err := d.db.FactsOf(ctx, ids)
	if err != nil {
		return control.OutboxList{}, err
	}
	for _, q := range queued[from:to] {
		server, _, _ := strings.Cut(q.Dest, "#")
		stream := facts[q.File].Stream
		a.Rows = append(a.Rows, control.OutboxRow{
			Server: server, Session: stream.SessionID, Path: stream.Path, Kind: queuedKind(&q),
			Batches: q.Batches, Entries: q.Entries, Bytes: q.Raw, Stored: q.Bytes, OldestAt: q.Oldest.UTC(),
		})
	}
	return a, nil
}

func queuedKind(q *state.Queued) string {
	if q.Blobs {
		return "blobs"
	}
	return "lines"
}

// DeadLetters lists the entries that servers refuse for what they are.
func (d *Daemon) DeadLetters(ctx context.Context) (control.DeadLetters, error) {
	all, err := d.db.DeadLetters(ctx)
	if err != nil {
		return control.DeadLetters{}, err
	}
	a := control.DeadLetters{SchemaVersion: control.SchemaVersion, Letters: []control.DeadLetter{}}
	for _, l := range all {
		server, _, _ := strings.Cut(l.Dest, "#")
		a.Letters = append(a.Letters, control.DeadLetter{
			ID: deadID(l.Key), Server: server, Session: l.Stream.SessionID, Path: l.Stream.Path,
			Kind: l.Batch.Kind.String(), Name: l.Batch.Blob.Name,
			Generation: l.Batch.Generation, Line: l.Line, Entries: l.Batch.Entries, Bytes: l.Batch.Raw,
			Reason: l.Reason, Status: l.Status, Answer: l.Answer, At: time.Unix(l.At, 0).UTC(),
		})
	}
	return a, nil
}

// deadID names a dead letter for people: the row it was in, and its line.
func deadID(k state.DeadKey) string { return fmt.Sprintf("%d-%d", k.Seq, k.Line) }

func parseDeadID(id string) (state.DeadKey, bool) {
	seq, line, ok := strings.Cut(id, "-")
	s, errSeq := strconv.ParseUint(seq, 10, 64)
	l, errLine := strconv.ParseInt(line, 10, 64)
	return state.DeadKey{Seq: s, Line: l}, ok && errSeq == nil && errLine == nil && l >= 0
}

// RetryDead puts dead letters back into the outbox.
func (d *Daemon) RetryDead(ctx context.Context, req control.DeadRequest) (control.DeadResult, error) {
	return d.takeDead(ctx, req, d.db.RetryDead)
}

// DropDead removes dead letters for good; their lines count as missing from then on.
func (d *Daemon) DropDead(ctx context.Context, req control.DeadRequest) (control.DeadResult, error) {
	return d.takeDead(ctx, req, d.db.DropDead)
}

func (d *Daemon) takeDead(ctx context.Context, req control.DeadRequest, take func(context.Context, []state.DeadKey) (int, error)) (control.DeadResult, error) {
	if req.All == (len(req.IDs) > 0) {
		return control.DeadResult{}, control.Usage("name dead letters, or all of them", "`ccship outbox dead` lists them")
	}
	letters, err := d.db.DeadLetters(ctx)
	if err != nil {
		return control.DeadResult{}, err
	}
	var keys []state.DeadKey
	for _, l := range letters {
		keys = append(keys, l.Key)
	}
	if !req.All {
		there := keys
		keys = nil
		for _, id := range req.IDs {
			key, ok := parseDeadID(id)
			if !ok || !slices.Contains(there, key) {
				return control.DeadResult{}, control.NewError(control.CodeNoDeadLetter, "there is no dead letter "+id,
					"`ccship outbox dead` lists them")
			}
			keys = append(keys, key)
		}
	}
	n, err := take(ctx, keys)
	return control.DeadResult{SchemaVersion: control.SchemaVersion, Letters: n}, err
}
