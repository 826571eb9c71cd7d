package sqlite

import (
	"context"
	"fmt"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// writeLines writes a batch's lines and counts their bytes: an import as blocks, others as rows. Lines that the server
// has masked before get their tokens again.
func (s *statements) writeLines(ctx context.Context, at lines.Place, j *lines.Job,
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
	rest, behind, err := s.unstored(ctx, at, b, blocks)
	if err == nil && behind {
		w, err = s.writeBlocks(ctx, at, blocks)
	}
	if err != nil {
		return w, err
	}
	grown := int64(0)
	for _, l := range rest {
		n, changed, err := s.line(ctx, at, l, b)
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
		if _, err := s.addBytes.ExecContext(ctx, at.Owner, at.Stream, at.Epoch, at.Generation, grown); err != nil {
			return w, fmt.Errorf("count bytes: %w", err)
		}
	}
	return w, s.masks.Note(ctx, d, at, again)
}

// unstored returns the lines of a batch that must be written as rows. behind: none, because the batch's blocks lie
// behind everything that is stored of their generation.
func (s *statements) unstored(ctx context.Context, at lines.Place, b *server.Batch,
	blocks []lines.Block) (rest []server.Line, behind bool, err error) {
	if len(b.Lines) == 0 {
		return nil, false, nil
	}
	packed, hot := int64(0), int64(0)
	err = s.findEnd.QueryRowContext(ctx, at.Owner, at.Stream, at.Epoch, at.Generation).Scan(&packed)
	if err == nil && blocks != nil {
		err = s.findHotEnd.QueryRowContext(ctx, at.Owner, at.Stream, at.Epoch, at.Generation).Scan(&hot)
	}
	if err != nil {
		return nil, false, fmt.Errorf("look for lines: %w", err)
	}
	if blocks != nil && blocks[0].First >= max(packed, hot) {
		return nil, true, nil
	}
	for _, l := range b.Lines {
		if l.Index < packed {
			rest, err = s.lines.Unstored(ctx, dialect{s.conn}, at, b)
			return rest, false, err
		}
	}
	return b.Lines, false, nil
}

// writeBlocks writes blocks behind everything that is stored of their generation.
func (s *statements) writeBlocks(ctx context.Context, at lines.Place, blocks []lines.Block) (w sqlstore.Written,
	err error) {
	grown := int64(0)
	for _, b := range blocks {
		_, err := s.insertBlock.ExecContext(ctx, at.Owner, at.Stream, at.Epoch, at.Generation, b.First, b.Last, b.Lines,
			b.RawBytes, b.SHA256, b.Header, b.Data)
		if err != nil {
			return w, fmt.Errorf("write block: %w", err)
		}
		grown += b.RawBytes + b.Lines
	}
	if _, err := s.addBytes.ExecContext(ctx, at.Owner, at.Stream, at.Epoch, at.Generation, grown); err != nil {
		return w, fmt.Errorf("count bytes: %w", err)
	}
	return sqlstore.Written{Any: true, From: blocks[0].First, To: blocks[len(blocks)-1].Last + 1}, nil
}
