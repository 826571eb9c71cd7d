package lines

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

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

// noteRetired notes those lines of a run, which have hashes, that are not noted yet: some are when a copy that was
// interrupted comes again.
func noteRetired(ctx context.Context, d sqlstore.Dialect, at Place, r *server.RetiredRun) error {
	if len(r.Lines) == 0 {
		return nil
	}
	noted, end := map[int64]bool{}, r.Lines[len(r.Lines)-1].Index+1
	err := ReadRetired(ctx, d, RetiredQuery{at, r.Lines[0].Index, end, false}, func(have *server.RetiredRun) error {
		for _, l := range have.Lines {
			noted[l.Index] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	return insertParts(ctx, d, at, r, noted)
}

// insertParts notes the parts of a run that lie between some of its lines.
func insertParts(ctx context.Context, d sqlstore.Dialect, at Place, r *server.RetiredRun,
	without map[int64]bool) error {
	part := &server.RetiredRun{At: r.At}
	for _, l := range r.Lines {
		if !without[l.Index] {
			part.Lines = append(part.Lines, l)
			continue
		}
		if err := insertRetired(ctx, d, at, part); err != nil {
			return err
		}
		part = &server.RetiredRun{At: r.At}
	}
	return insertRetired(ctx, d, at, part)
}

// insertRetired notes a run, of which no line is noted.
func insertRetired(ctx context.Context, d sqlstore.Dialect, at Place, r *server.RetiredRun) error {
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
  header, hashes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		at.args(r.Lines[0].Index, r.Lines[n-1].Index, n, size, sqlstore.Micros(r.At), header(entries), hashes.Bytes())...)
	if err != nil {
		return fmt.Errorf("note retired lines: %w", err)
	}
	end := r.Lines[n-1].Index + 1
	_, err = d.Exec(ctx, `UPDATE generations SET stored_to = ?`+ofPlace+` AND stored_to < ?`,
		append([]any{end}, at.args(end)...)...)
	return sqlstore.Wrap(err, "write generation")
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

// divide takes lines that are stored now out of a run in which they lie: its parts between them remain.
func divide(ctx context.Context, d sqlstore.Dialect, at Place, r *server.RetiredRun, stored map[int64]bool) error {
	if !slices.ContainsFunc(r.Lines, func(l server.RetiredLine) bool { return stored[l.Index] }) {
		return nil
	}
	if _, err := d.Exec(ctx, `DELETE FROM retired`+ofPlace+` AND first = ?`, at.args(r.First)...); err != nil {
		return fmt.Errorf("divide retired lines: %w", err)
	}
	return insertParts(ctx, d, at, r, stored)
}
