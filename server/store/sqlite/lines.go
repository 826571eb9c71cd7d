package sqlite

import (
	"context"
	"fmt"
	"slices"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// target is a generation that is written to, and one past the last line of it that is stored, or was retired.
type target struct {
	lines.Place
	storedTo int64
}

// writeLines writes a batch's lines and counts their bytes: an import as blocks, others as rows. Lines that the server
// has masked before get their tokens again.
func (s *writer) writeLines(ctx context.Context, at target, j *lines.Job,
	masked bool) (w sqlstore.Written, err error) {
	d, b, blocks, again := dialect{s.conn}, j.Batch, j.Blocks, []int64(nil)
	if masked {
		if b, again, err = s.masks.Again(ctx, d, at.Stream, b); err != nil {
			return w, err
		}
		if b != j.Batch {
			blocks = nil // what was packed lacks the tokens
		}
	}
	if blocks != nil && blocks[0].First >= at.storedTo {
		if w, err = s.writeBlocks(ctx, at.Place, blocks); err != nil {
			return w, err
		}
		return w, s.masks.Note(ctx, d, at.Place, again)
	}
	rest, grown := b.Lines, int64(0)
	if slices.ContainsFunc(rest, func(l server.Line) bool { return l.Index < at.storedTo }) {
		if rest, err = s.lines.Unstored(ctx, d, at.Place, b); err != nil {
			return w, err
		}
	}
	for _, l := range rest {
		n, changed, err := s.line(ctx, at.Place, l, b)
		if err != nil {
			return w, err
		}
		if !changed {
			continue
		}
		if !w.Any {
			w = sqlstore.Written{Any: true, From: l.Index, To: l.Index + 1}
		}
		grown, w.From, w.To = grown+n, min(w.From, l.Index), max(w.To, l.Index+1)
	}
	if grown != 0 {
		if err := s.grown(ctx, at.Place, grown, w.To); err != nil {
			return w, err
		}
	}
	return w, s.masks.Note(ctx, d, at.Place, again)
}

// writeBlocks writes blocks behind everything that is stored of their generation.
func (s *writer) writeBlocks(ctx context.Context, at lines.Place, blocks []lines.Block) (w sqlstore.Written,
	err error) {
	if err := s.lines.Insert(ctx, dialect{s.conn}, at, blocks); err != nil {
		return w, err
	}
	grown := int64(0)
	for _, b := range blocks {
		grown += b.RawBytes + b.Lines
	}
	w = sqlstore.Written{Any: true, From: blocks[0].First, To: blocks[len(blocks)-1].Last + 1}
	return w, s.grown(ctx, at, grown, w.To)
}

// grown notes how many bytes more a generation has, and one past the last line that was written.
func (s *writer) grown(ctx context.Context, at lines.Place, bytes, to int64) error {
	if _, err := s.conn.ExecContext(ctx, grow, at.Owner, at.Stream, at.Epoch, at.Generation, bytes, to); err != nil {
		return fmt.Errorf("write generation: %w", err)
	}
	return nil
}
