package lines

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// RetiredHash is the hash of a line, by which it is known again.
func RetiredHash(raw []byte) []byte {
	h := sha256.New()
	h.Write(raw)
	h.Write([]byte{'\n'})
	return h.Sum(nil)
}

// RetiredQuery asks for runs that have lines from From up to before To, with the hash of each line or without.
type RetiredQuery struct {
	Place
	From, To int64
	Hashes   bool
}

// ReadRetired calls yield with runs, ascending.
func ReadRetired(ctx context.Context, d sqlstore.Dialect, q RetiredQuery, yield func(*server.RetiredRun) error) error {
	column := `hashes`
	if !q.Hashes {
		column = `header`
	}
	err := d.Query(ctx, `SELECT first, last, lines, raw_bytes, at, header, `+column+` FROM retired`+ofPlace+
		` AND first < ? AND last >= ? ORDER BY first`, q.args(q.To, q.From), func(row sqlstore.Scanner) error {
		r, err := scan(row, q.Hashes)
		if err != nil {
			return err
		}
		return yield(r)
	})
	return sqlstore.Wrap(err, "read retired lines")
}

func scan(row sqlstore.Scanner, hashes bool) (*server.RetiredRun, error) {
	var b Block
	var when int64
	var sums []byte
	r := &server.RetiredRun{}
	err := row.Scan(&b.First, &b.Last, &b.Lines, &b.RawBytes, &when, &b.Header, &sums)
	if err != nil {
		return nil, err
	}
	entries, err := b.Index()
	if err == nil && hashes && len(sums) != sha256.Size*len(entries) {
		err = errDamaged
	}
	if err != nil {
		return nil, fmt.Errorf("lines %d to %d: %w", b.First, b.Last, err)
	}
	r.First, r.Last, r.At = b.First, b.Last, sqlstore.Moment(when)
	for i, e := range entries {
		l := server.RetiredLine{Index: e.Index, Received: e.Received, Size: e.Size, Kind: server.Kind(e.Kind)}
		if hashes {
			l.SHA256 = sums[sha256.Size*i : sha256.Size*(i+1)]
		}
		r.Lines = append(r.Lines, l)
	}
	return r, nil
}

// InsertRetired notes a run, whose lines have hashes.
func InsertRetired(ctx context.Context, d sqlstore.Dialect, at Place, r *server.RetiredRun) error {
	if len(r.Lines) == 0 {
		return nil
	}
	var entries []entry
	var hashes bytes.Buffer
	size := int64(0)
	for _, l := range r.Lines {
		entries = append(entries, entry{Index: l.Index, Received: l.Received, Kind: uint8(l.Kind), Size: l.Size})
		hashes.Write(l.SHA256)
		size += l.Size
	}
	n := len(r.Lines)
	_, err := d.Exec(ctx, `INSERT INTO retired (owner, stream, epoch, generation, first, last, lines, raw_bytes, at,
  header, hashes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (owner, stream, epoch, generation, first) DO NOTHING`,
		at.args(r.Lines[0].Index, r.Lines[n-1].Index, n, size, sqlstore.Micros(r.At), header(entries), hashes.Bytes())...)
	if err != nil {
		return fmt.Errorf("note retired lines: %w", err)
	}
	end := r.Lines[n-1].Index + 1
	_, err = d.Exec(ctx, `UPDATE generations SET stored_to = ?`+ofPlace+` AND stored_to < ?`,
		append([]any{end}, at.args(end)...)...)
	return sqlstore.Wrap(err, "write generation")
}

// unretired returns the lines of a batch that were not retired with the same bytes: they have to be stored. A batch
// with a Writer that has other bytes for a retired line is refused: its writer begins a new generation. From a client
// without one such a line is stored, and is not retired any more.
func unretired(ctx context.Context, d sqlstore.Dialect, at Place, b *server.Batch) ([]server.Line, error) {
	if len(b.Lines) == 0 {
		return nil, nil
	}
	from, to := b.Lines[0].Index, b.Lines[0].Index
	for _, l := range b.Lines {
		from, to = min(from, l.Index), max(to, l.Index)
	}
	var runs []*server.RetiredRun
	err := ReadRetired(ctx, d, RetiredQuery{at, from, to + 1, true}, func(r *server.RetiredRun) error {
		runs = append(runs, r)
		return nil
	})
	if err != nil || len(runs) == 0 {
		return b.Lines, err
	}
	was := map[int64]*server.RetiredLine{}
	for _, r := range runs {
		for i := range r.Lines {
			was[r.Lines[i].Index] = &r.Lines[i]
		}
	}
	var rest []server.Line
	for _, l := range b.Lines {
		if have := was[l.Index]; have != nil {
			same, err := known(ctx, d, at, have, l)
			if err != nil {
				return nil, err
			}
			if same {
				continue
			}
			if h := &b.Head; h.Writer.Incarnation != "" {
				return nil, &server.StreamError{Code: protocol.CodeOtherBytes, Epoch: h.Epoch, Generation: h.Generation,
					Line: l.Index}
			}
		}
		rest = append(rest, l)
	}
	return rest, cut(ctx, d, at, runs, rest)
}

// known reports whether a line is one that was retired. Of one that the server had masked by itself only the length is
// known: tokens are as long as what they replace.
func known(ctx context.Context, d sqlstore.Dialect, at Place, have *server.RetiredLine,
	l server.Line) (same bool, err error) {
	if have.Kind != l.Kind || have.Size != int64(len(l.Raw)) {
		return false, nil
	}
	if bytes.Equal(RetiredHash(l.Raw), have.SHA256) {
		return true, nil
	}
	n, err := sqlstore.Number(ctx, d, `SELECT 1 FROM masked_lines`+ofPlace+` AND line = ?`, at.args(l.Index)...)
	return n > 0, sqlstore.Wrap(err, "look for masked lines")
}

// cut takes lines that are stored now out of the runs in which they lie, and divides those there.
func cut(ctx context.Context, d sqlstore.Dialect, at Place, runs []*server.RetiredRun,
	stored []server.Line) error {
	now := map[int64]bool{}
	for _, l := range stored {
		now[l.Index] = true
	}
	for _, r := range runs {
		inside := false
		for line := range now {
			inside = inside || r.First <= line && line <= r.Last
		}
		if !inside {
			continue
		}
		if _, err := d.Exec(ctx, `DELETE FROM retired`+ofPlace+` AND first = ?`, at.args(r.First)...); err != nil {
			return fmt.Errorf("divide retired lines: %w", err)
		}
		for _, part := range divide(r, now) {
			if err := InsertRetired(ctx, d, at, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// divide is what remains of a run: its parts between stored lines.
func divide(r *server.RetiredRun, stored map[int64]bool) (parts []*server.RetiredRun) {
	lines := slices.Sorted(maps.Keys(stored))
	part := &server.RetiredRun{At: r.At}
	for _, l := range r.Lines {
		for len(lines) > 0 && lines[0] <= l.Index {
			parts, part, lines = append(parts, part), &server.RetiredRun{At: r.At}, lines[1:]
		}
		if !stored[l.Index] {
			part.Lines = append(part.Lines, l)
		}
	}
	return append(parts, part)
}
