package api

import (
	"context"
	"time"

	"github.com/ccship/ccship/server"
)

// copyBytes ends a batch of copied lines.
const copyBytes = 4 << 20

// copyStream writes one stream's view to generation 0 of another stream of the same user, batch by batch.
type copyStream struct {
	Store  server.Ingester
	Owner  int64        // whose both streams are
	Quota  server.Quota // of the owner
	Writer server.Writer

	Machine, Host, Epoch string // of the copy
	First                int64  // how many lines of the file are copied

	Lines   int64          // written
	Receipt server.Receipt // of the last batch

	masked map[server.MaskedLine]bool // of the copied epoch
	batch  server.Batch
	bytes  int
}

// Write copies the first lines of the newest view of a stream. server.ErrNotFound when it is not the Owner's.
func (c *copyStream) Write(ctx context.Context, snap server.Snapshot) error {
	x := snap.Session()
	if x.Owner != c.Owner {
		return server.ErrNotFound // shared with the caller: not the caller's to copy
	}
	v, err := server.NewestView(snap)
	if err != nil {
		return err
	}
	c.batch.Head = server.Head{
		SessionID: x.SessionID, ProjectHash: x.ProjectHash, Machine: c.Machine, Host: c.Host,
		Epoch: c.Epoch, Path: x.Path, Cwd: x.Cwd, Project: x.Project, Parent: x.Parent,
		EndLine: min(c.First, v.Total), EOFNewline: true, Writer: c.Writer,
	}
	c.batch.Owner, c.batch.Quota = c.Owner, c.Quota
	if err := c.loadMasked(ctx, snap); err != nil {
		return err
	}
	for _, span := range v.Between(0, c.First) {
		err := snap.Retired(ctx, span, true, func(r *server.RetiredRun) error {
			c.batch.Retired = append(c.batch.Retired, within(r, span))
			return nil
		})
		if err != nil {
			return err
		}
		err = snap.Lines(ctx, span, func(l server.Line) error {
			l.Raw = append([]byte(nil), l.Raw...)
			c.batch.Lines = append(c.batch.Lines, l)
			if c.masked[server.MaskedLine{Generation: span.Generation, Line: l.Index}] {
				c.batch.Masked = append(c.batch.Masked, l.Index)
			}
			if c.bytes += len(l.Raw); c.bytes < copyBytes {
				return nil
			}
			return c.flush(ctx)
		})
		if err != nil {
			return err
		}
	}
	return c.flush(ctx)
}

// within returns what of a run is in a span.
func within(r *server.RetiredRun, s server.Span) *server.RetiredRun {
	cut := &server.RetiredRun{At: r.At}
	for _, l := range r.Lines {
		if s.From <= l.Index && l.Index < s.To {
			cut.Lines = append(cut.Lines, l)
		}
	}
	return cut
}

// loadMasked finds the lines that the server masked by itself: their copies are masked by it too.
func (c *copyStream) loadMasked(ctx context.Context, snap server.Snapshot) error {
	list, err := snap.Masked(ctx)
	c.masked = map[server.MaskedLine]bool{}
	for _, l := range list {
		c.masked[l] = true
	}
	return err
}

// flush stores the lines collected so far. The ledger's count continues from batch to batch.
func (c *copyStream) flush(ctx context.Context) error {
	c.batch.Received = time.Now()
	if err := c.Store.Put(ctx, &c.batch); err != nil {
		return err
	}
	c.Receipt = c.batch.Head.Receipt
	if c.batch.Head.Writer.Incarnation != "" {
		c.batch.Head.Writer.Store, c.batch.Head.Writer.Count = c.Receipt.Store, c.Receipt.Count
	}
	c.Lines += int64(len(c.batch.Lines))
	c.batch.Lines, c.batch.Masked, c.batch.Retired, c.bytes = nil, nil, nil, 0
	return nil
}
