// Package lines keeps the lines of transcripts, in the same way in both databases: in blocks, in hot rows, in objects
// outside of the database. It knows no driver.
//
// A block holds about 160 KiB of lines as one zstd frame, and a header that says which lines they are. It is proven by
// its hash whenever it is opened, and never changes but by masking, which replaces it. Blocks of a generation do not
// overlap. Lines that came last are hot, rows of their own; a sealer packs them later. Readers see both as one. A hot
// row is in force where a block has the line too: of clients without a ledger later bytes replace earlier ones.
//
// Cold blocks and files are objects of about a MiB. The database keeps which object has what, and the hash of each. An
// object belongs to one stream or one file, and its name is never used again. It is noted in the database before it is
// written, and used only after it was read back and its hash is right; in the same transaction the bytes leave the
// database. So a crash leaves at most objects that nothing uses; they are noted, and are removed later. A block that
// changes, or goes, stops using its object in the transaction that does that. Sweep brings back the rest of the object,
// and removes it once no open snapshot shows it.
//
// Masks replaces secrets in stored bytes by tokens, and changes nothing else. Policy previews and applies rules of
// retention; of lines that went it keeps the hashes.
package lines

import (
	"context"
	"errors"
	"fmt"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// Place is a generation of a stream, in the terms of the store: Epoch is server.Epoch.ID.
type Place struct{ Owner, Stream, Epoch, Generation int64 }

// args are values of a statement: the place's, and more.
func (p Place) args(more ...any) []any {
	return append([]any{p.Owner, p.Stream, p.Epoch, p.Generation}, more...)
}

// ofPlace selects rows of a generation. Its values are the args of the place.
const ofPlace = ` WHERE owner = ? AND stream = ? AND epoch = ? AND generation = ?`

// Lines reads and packs lines. Safe for concurrent use; each call uses the dialect that it is given.
type Lines struct {
	codec *codec
	cold  *Tier // set once, before anything is read
	// step is called before each step of packing, moving and retiring, by its name. An error ends it there. For tests.
	step func(name string) error
}

// New returns the lines of a database. step is as sqlstore.Opening has it.
func New(step func(name string) error) (*Lines, error) {
	codec, err := NewCodec()
	if err != nil {
		return nil, err
	}
	if step == nil {
		step = func(string) error { return nil }
	}
	return &Lines{codec: codec, step: step}, nil
}

// overlapping asks for blocks that have lines of a span, in their order. columns are of table blocks.
func overlapping(columns string, at Place, from, to int64) (string, []any) {
	// Blocks do not overlap: of those that begin before the span only the last one can reach into it.
	return `SELECT ` + columns + ` FROM blocks` + ofPlace + ` AND first < ? AND last >= ? AND first >= coalesce((
  SELECT max(first) FROM blocks` + ofPlace + ` AND first <= ?), 0) ORDER BY first`,
		append(at.args(to, from), at.args(from)...)
}

// storedBlock is a block as the database has it. What changes blocks reads each right before.
type storedBlock struct {
	Block
	away        object // that has the data which the database lacks; id is "" if it is lost
	place, part int64  // where the data begins in it, and how long it is
}

// blocks are up to limit blocks with lines of a span. fetch brings the data of those that want it.
func (x *Lines) blocks(ctx context.Context, d sqlstore.Dialect, at Place, span [2]int64,
	limit int) ([]storedBlock, error) {
	inner, args := overlapping(`first, last, lines, raw_bytes, sha256, header, data, object, place, size`, at, span[0],
		span[1])
	out, err := sqlstore.List(ctx, d, `SELECT b.first, b.last, b.lines, b.raw_bytes, b.sha256, b.header, b.data,
  coalesce(o.id, ''), coalesce(o.size, 0), o.sha256, b.place, b.size
FROM (`+inner+` LIMIT ?) b LEFT JOIN cold_objects o ON o.owner = ? AND o.stream = ? AND o.blob = 0 AND o.id = b.object
ORDER BY b.first`, append(args, limit, at.Owner, at.Stream),
		func(row sqlstore.Scanner) (b storedBlock, err error) {
			a := &b.away
			a.owner, a.stream = at.Owner, at.Stream
			return b, row.Scan(&b.First, &b.Last, &b.Lines, &b.RawBytes, &b.SHA256, &b.Header, &b.Data, &a.id, &a.size,
				&a.sha256, &b.place, &b.part)
		})
	return out, sqlstore.Wrap(err, "read blocks")
}

// fetch brings a block's data if the database does not have it. What is lost stays without. A transaction that others
// wait for does not wait: its error names what is not in memory, and it begins again once that is.
func (x *Lines) fetch(ctx context.Context, b *storedBlock, wait bool) (err error) {
	if !b.Away() || b.away.id == "" {
		return nil
	}
	data, have := x.cold.cache.find(b.away.id)
	switch {
	case wait:
		data, err = x.cold.fetch(ctx, b.away)
	case !have:
		err = &missError{b.away}
	}
	if end := b.place + b.part; err == nil && end <= int64(len(data)) {
		b.Data = data[b.place:end:end]
	}
	return err
}

// TryOne returns a line whole, without waiting for cold storage, for a transaction that others wait for.
func (x *Lines) TryOne(ctx context.Context, d sqlstore.Dialect, at Place,
	line int64) (l Line, ok bool, err error) {
	return x.one(ctx, reading{x: x, d: d, at: at}, line)
}

// one returns a line that a reading finds. ok is false if it is not stored.
func (x *Lines) one(ctx context.Context, r reading, line int64) (l Line, ok bool, err error) {
	r.yield = func(got Line) error {
		ok = true
		got.Raw = append([]byte{}, got.Raw...)
		l = got
		return nil
	}
	err = r.all(ctx, line, line+1)
	return l, ok, err
}

// Read calls yield with each line of a span, ascending. The bytes of a line are valid until yield returns. A
// *server.DamagedError names the lines that come next and can't be read; those behind it can.
func (x *Lines) Read(ctx context.Context, d sqlstore.Dialect, at Place, s server.Span,
	yield func(server.Line) error) error {
	at.Generation = s.Generation
	r := reading{x: x, d: d, at: at, wait: true, span: s, yield: func(l Line) error {
		return yield(server.Line{Index: l.Index, Kind: server.Kind(l.Kind), Raw: l.Raw, Cut: l.Cut})
	}}
	return r.all(ctx, s.From, s.To)
}

// Amount is what is stored of a span of lines: notes of oversize lines apart, bytes with newlines.
type Amount struct{ Lines, Oversize, Bytes int64 }

func (a *Amount) add(kind server.Kind, size int64) {
	if kind == server.Oversize {
		a.Oversize++
	} else {
		a.Lines, a.Bytes = a.Lines+1, a.Bytes+size+1
	}
}

// Measure counts what is stored of a span. A block whose header is damaged has nothing.
func (x *Lines) Measure(ctx context.Context, d sqlstore.Dialect, at Place, s server.Span) (out Amount, err error) {
	at.Generation = s.Generation
	hot, err := x.hotLines(ctx, d, at, s.From, s.To)
	if err != nil {
		return out, err
	}
	for _, e := range hot {
		out.add(server.Kind(e.Kind), e.Size)
	}
	query, args := overlapping(`first, last, lines, raw_bytes, header`, at, s.From, s.To)
	err = d.Query(ctx, query, args, func(row sqlstore.Scanner) error {
		var b Block
		if err := row.Scan(&b.First, &b.Last, &b.Lines, &b.RawBytes, &b.Header); err != nil {
			return err
		}
		entries, _ := b.Index()
		for _, e := range entries {
			if _, over := hot[e.Index]; e.Index >= s.From && e.Index < s.To && !over {
				out.add(server.Kind(e.Kind), e.Size)
			}
		}
		return nil
	})
	return out, sqlstore.Wrap(err, "measure blocks")
}

// hotLines are the hot lines of a span, without their bytes.
func (x *Lines) hotLines(ctx context.Context, d sqlstore.Dialect, at Place, from, to int64) (map[int64]entry, error) {
	out := map[int64]entry{}
	err := d.Query(ctx, `SELECT line, kind, length(raw) FROM lines`+ofPlace+` AND line >= ? AND line < ?`,
		at.args(from, to), func(row sqlstore.Scanner) error {
			var e entry
			var kind int64
			err := row.Scan(&e.Index, &kind, &e.Size)
			e.Kind = uint8(kind)
			out[e.Index] = e
			return err
		})
	return out, sqlstore.Wrap(err, "look for lines")
}

// before is the last line of the block that begins at or before row l of lines; -1 without one. Its values are the
// owner's and the stream's id.
const before = `coalesce((SELECT b.last FROM blocks b WHERE b.owner = ? AND b.stream = ? AND b.epoch = l.epoch
  AND b.generation = l.generation AND b.first <= l.line ORDER BY b.first DESC LIMIT 1), -1)`

// mostListed is how many failures of one pass are listed.
const mostListed = 8

// failures lists the first errors of a pass and counts the others: when the disk is full, everything fails.
type failures struct {
	list []error
	more int
}

func (f *failures) add(err error) {
	if len(f.list) < mostListed {
		f.list = append(f.list, err)
	} else {
		f.more++
	}
}

// with joins them and what ended the pass; nil if there is nothing.
func (f *failures) with(err error) error {
	all := f.list
	if f.more > 0 {
		all = append(all, fmt.Errorf("%d more failed", f.more))
	}
	return errors.Join(append(all, err)...)
}

// Forget deletes a stream with everything that belongs to it, and returns how many lines it had. The caller has the
// hold of its owner's answers. Sums of answers need the stream's row.
func (x *Lines) Forget(ctx context.Context, d sqlstore.Dialect, of sqlstore.OwnedStream) (n int64, err error) {
	if err := sqlstore.DropFromIndex(ctx, d, of.Owner, of.Stream); err != nil {
		return 0, fmt.Errorf("remove texts: %w", err)
	}
	if err := sqlstore.RemoveAnswers(ctx, d, of); err != nil {
		return 0, fmt.Errorf("remove answers: %w", err)
	}
	if _, err := d.Exec(ctx, `DELETE FROM streams WHERE owner = ? AND id = ?`, of.Owner, of.Stream); err != nil {
		return 0, fmt.Errorf("remove stream: %w", err)
	}
	if err := sqlstore.RemoveArtifacts(ctx, d, of); err != nil {
		return 0, fmt.Errorf("remove artifacts: %w", err)
	}
	if n, err = x.releaseLines(ctx, d, of.Owner, of.Stream); err != nil {
		return 0, err
	}
	for _, table := range []string{"lines", "blocks", "retired", "drops", "superseded", "facts", "folds", "moments",
		"edits", "commits", "marks", "share_links", "masked_lines", "maskings", "generations", "epochs"} {
		_, err := d.Exec(ctx, `DELETE FROM `+table+` WHERE owner = ? AND stream = ?`, of.Owner, of.Stream)
		if err != nil {
			return 0, fmt.Errorf("remove %s: %w", table, err)
		}
	}
	return n, nil
}

// releaseLines counts the lines of a stream, and has those in cold storage removed.
func (x *Lines) releaseLines(ctx context.Context, d sqlstore.Dialect, owner, stream int64) (n int64, err error) {
	n, err = sqlstore.Number(ctx, d, `SELECT (SELECT count(*) FROM lines l
  WHERE l.owner = ? AND l.stream = ? AND `+before+` < l.line) +
  (SELECT CAST(coalesce(sum(lines), 0) AS bigint) FROM blocks WHERE owner = ? AND stream = ?)`,
		owner, stream, owner, stream, owner, stream)
	if err != nil {
		return 0, fmt.Errorf("count lines: %w", err)
	}
	// What is being written stays noted until its writer finds the stream gone.
	_, err = d.Exec(ctx, `UPDATE cold_objects SET state = 2, at = ? WHERE owner = ? AND stream = ? AND state = 1`, now(),
		owner, stream)
	return n, sqlstore.Wrap(err, "remove what is cold")
}
