package lines

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// A batch's lines are packed at once from so many bytes on, or from fewer if it has several lines: the end of an
// import. Less of a stream comes alive, and is packed with what follows it.
const (
	leastToPack    = 64 << 10
	leastOfSeveral = 16 << 10
	several        = 8
)

// Pack packs the lines of a batch, if they are so many that they are an import. nil: they stay hot. It is done before
// a batch waits for its turn to be written.
func (x *Lines) Pack(b *server.Batch) ([]Block, error) {
	size, last := 0, int64(-1)
	for _, l := range b.Lines {
		if l.Index <= last {
			return nil, nil
		}
		size, last = size+len(l.Raw), l.Index
	}
	if size < leastOfSeveral || size < leastToPack && len(b.Lines) < several {
		return nil, nil
	}
	all := make([]Line, len(b.Lines))
	for i, l := range b.Lines {
		all[i] = Line{Index: l.Index, Received: b.Received.UnixMicro(), Kind: uint8(l.Kind), Raw: l.Raw}
	}
	return x.build(cutBlock(all))
}

func (x *Lines) build(pieces [][]Line) (out []Block, err error) {
	for _, piece := range pieces {
		b, err := x.codec.Build(piece)
		if err != nil {
			return nil, fmt.Errorf("pack lines: %w", err)
		}
		out = append(out, b)
	}
	return out, nil
}

const insertBlock = `
INSERT INTO blocks (owner, stream, epoch, generation, first, last, lines, raw_bytes, sha256, header, data)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// Insert stores blocks, in which no line is that is stored.
func (x *Lines) Insert(ctx context.Context, d sqlstore.Dialect, at Place, blocks []Block) error {
	for _, b := range blocks {
		_, err := d.Exec(ctx, insertBlock, at.args(b.First, b.Last, b.Lines, b.RawBytes, b.SHA256, b.Header, b.Data)...)
		if err != nil {
			return fmt.Errorf("write block: %w", err)
		}
	}
	return nil
}

// Put stores a batch's lines, in the transaction that has locked the stream, as blocks if it has those. A line that
// is stored, or was retired, with the same bytes stays as it is. With other bytes it is refused if the batch has a
// Writer; else it replaces what is stored, which is superseded then. storedTo is the generation's. The
// caller notes in the generation what was written.
func (x *Lines) Put(ctx context.Context, d sqlstore.Dialect, at Place, storedTo int64,
	j *Job) (w sqlstore.Written, err error) {
	b, blocks := j.Batch, j.Blocks
	r := rewriting{x: x, d: d, at: at, b: b, first: map[int64]server.Line{}, several: map[int64]bool{},
		held: map[int64]heldLine{}, back: map[int64]bool{}}
	if blocks != nil && blocks[0].First >= storedTo {
		if err := x.Insert(ctx, d, at, blocks); err != nil {
			return w, err
		}
		for _, l := range b.Lines {
			r.grow(l.Index, int64(len(l.Raw))+1)
		}
	} else if err := r.all(ctx, storedTo); err != nil {
		return w, err
	}
	return r.written, nil
}

// rewriting is a batch whose lines become rows.
type rewriting struct {
	x       *Lines
	d       sqlstore.Dialect
	at      Place
	b       *server.Batch
	first   map[int64]server.Line // of the batch's lines with an index
	several map[int64]bool        // lines that the batch has with different bytes
	held    map[int64]heldLine
	runs    []*server.RetiredRun // that have some of them
	back    map[int64]bool       // lines that are retired no more
	rows    []Line               // to be written
	written sqlstore.Written
}

// heldLine is a line that is in force, or was when it was retired.
type heldLine struct {
	server.Line
	size    int64 // with a newline
	other   bool  // than the first that comes for it; it has no bytes here
	retired bool
}

func (h *heldLine) is(l server.Line) bool {
	return !h.other && h.Kind == l.Kind && bytes.Equal(h.Raw, l.Raw)
}

func (r *rewriting) all(ctx context.Context, storedTo int64) error {
	if slices.ContainsFunc(r.b.Lines, func(l server.Line) bool { return l.Index < storedTo }) {
		if err := r.find(ctx); err != nil {
			return err
		}
	}
	for _, l := range r.b.Lines {
		if err := r.line(ctx, l); err != nil {
			return err
		}
	}
	if err := r.flush(ctx); err != nil {
		return err
	}
	for _, run := range r.runs {
		if err := divide(ctx, r.d, r.at, run, r.back); err != nil {
			return err
		}
	}
	return nil
}

func (r *rewriting) grow(line, bytes int64) {
	if !r.written.Any {
		r.written = sqlstore.Written{Any: true, From: line, To: line + 1}
	}
	w := &r.written
	w.From, w.To, w.Bytes = min(w.From, line), max(w.To, line+1), w.Bytes+bytes
}

// find looks for the stored lines that others come for. One of a block that differs becomes a row, so that it is
// replaced like any row. A damaged block counts as not stored.
func (r *rewriting) find(ctx context.Context) error {
	lines := r.b.Lines
	if len(lines) == 0 {
		return nil
	}
	from, to := lines[0].Index, lines[0].Index
	for _, l := range lines {
		from, to = min(from, l.Index), max(to, l.Index)
		if f, again := r.first[l.Index]; !again {
			r.first[l.Index] = l
		} else if f.Kind != l.Kind || !bytes.Equal(f.Raw, l.Raw) {
			r.several[l.Index] = true
		}
	}
	if err := r.holdRetired(ctx, from, to); err != nil {
		return err
	}
	err := r.d.Query(ctx, `SELECT line, kind, raw FROM lines`+ofPlace+` AND line >= ? AND line <= ?`, r.at.args(from, to),
		func(row sqlstore.Scanner) error {
			var l Line
			var kind int64
			err := row.Scan(&l.Index, &kind, &l.Raw)
			l.Kind = uint8(kind)
			r.hold(l)
			return err
		})
	if err != nil {
		return fmt.Errorf("look for lines: %w", err)
	}
	for from <= to {
		page, err := r.x.blocks(ctx, r.d, r.at, [2]int64{from, to + 1}, pageBlocks)
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			if err := r.block(ctx, &page[i]); err != nil {
				return err
			}
		}
		from = page[len(page)-1].Last + 1
	}
	return nil
}

// holdRetired notes retired lines.
func (r *rewriting) holdRetired(ctx context.Context, from, to int64) error {
	err := ReadRetired(ctx, r.d, RetiredQuery{r.at, from, to + 1, true}, func(run *server.RetiredRun) error {
		r.runs = append(r.runs, run)
		return nil
	})
	for _, run := range r.runs {
		for i := range run.Lines {
			l, comes := r.first[run.Lines[i].Index]
			if err != nil || !comes {
				continue
			}
			var same bool
			same, err = known(ctx, r.d, r.at, &run.Lines[i], l)
			r.held[l.Index] = heldLine{Line: l, other: !same, retired: true}
		}
	}
	return err
}

// hold notes a stored line. It reports whether any that comes for it differs.
func (r *rewriting) hold(stored Line) (differs bool) {
	l, ok := r.first[stored.Index]
	if !ok {
		return false
	}
	h := heldLine{Line: l, size: int64(len(stored.Raw)) + 1,
		other: uint8(l.Kind) != stored.Kind || !bytes.Equal(l.Raw, stored.Raw)}
	r.held[l.Index] = h
	return h.other || r.several[stored.Index]
}

func (r *rewriting) block(ctx context.Context, b *storedBlock) error {
	entries, _ := b.Index() // none of a damaged block
	asked := func(line int64) bool {
		_, comes := r.first[line]
		_, over := r.held[line]
		return comes && !over
	}
	if !slices.ContainsFunc(entries, func(e entry) bool { return asked(e.Index) }) {
		return nil
	}
	all, err := r.x.linesOf(ctx, b)
	if err != nil {
		return err
	}
	for _, l := range all {
		if asked(l.Index) && r.hold(l) {
			if err := r.row(ctx, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// line writes a line that comes, unless it is there.
func (r *rewriting) line(ctx context.Context, l server.Line) error {
	was, held := r.held[l.Index]
	if held && was.is(l) {
		return nil
	}
	if h := &r.b.Head; held && h.Writer.Incarnation != "" {
		return &server.StreamError{
			Code: protocol.CodeOtherBytes, Epoch: h.Epoch, Generation: h.Generation, Line: l.Index}
	}
	grown := int64(len(l.Raw)) + 1
	r.back[l.Index] = r.back[l.Index] || was.retired
	r.held[l.Index] = heldLine{Line: l, size: grown}
	if held && !was.retired {
		r.grow(l.Index, grown-was.size)
		return r.replace(ctx, l)
	}
	r.grow(l.Index, grown)
	return r.row(ctx, Line{Index: l.Index, Received: r.b.Received.UnixMicro(), Kind: uint8(l.Kind), Raw: l.Raw})
}

// row writes a row with the next ones.
func (r *rewriting) row(ctx context.Context, l Line) error {
	if r.rows = append(r.rows, l); len(r.rows) < rowsAtOnce {
		return nil
	}
	return r.flush(ctx)
}

const rowsAtOnce = 16

// flush writes the rows: of several, one statement costs less than one for each, and few statements are compiled.
func (r *rewriting) flush(ctx context.Context) error {
	for n := rowsAtOnce; n > 0; n /= 4 {
		query := `INSERT INTO lines (owner, stream, epoch, generation, line, received, kind, raw)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)` + strings.Repeat(`, (?, ?, ?, ?, ?, ?, ?, ?)`, n-1)
		for ; len(r.rows) >= n; r.rows = r.rows[n:] {
			var args []any
			for _, l := range r.rows[:n] {
				args = append(args, r.at.args(l.Index, l.Received, int64(l.Kind), sqlstore.NotNil(l.Raw))...)
			}
			if _, err := r.d.Exec(ctx, query, args...); err != nil {
				return fmt.Errorf("write lines: %w", err)
			}
		}
	}
	return nil
}

// replace keeps a row, and puts a line in its place.
func (r *rewriting) replace(ctx context.Context, l server.Line) error {
	if err := r.flush(ctx); err != nil {
		return err
	}
	now := r.b.Received.UnixMicro()
	_, err := r.d.Exec(ctx, `
INSERT INTO superseded (owner, stream, epoch, generation, line, received, replaced, kind, raw)
SELECT owner, stream, epoch, generation, line, received, CAST(? AS bigint), kind, raw FROM lines`+ofPlace+`
AND line = ?`, append([]any{now}, r.at.args(l.Index)...)...)
	if err == nil {
		_, err = r.d.Exec(ctx, `UPDATE lines SET received = ?, kind = ?, raw = ?`+ofPlace+` AND line = ?`,
			append([]any{now, int64(l.Kind), sqlstore.NotNil(l.Raw)}, r.at.args(l.Index)...)...)
	}
	return sqlstore.Wrap(err, "replace line")
}
