package lines

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
	"github.com/ccship/ccship/transcript/redact"
)

// file masks the content of a file of the stream's user, and gives it its new address everywhere.
func (t *maskTx) file(ctx context.Context, f *protocol.FileMask) (int64, error) {
	var id, size, refs int64
	err := t.Lock(ctx, `SELECT id, size FROM blobs WHERE owner = ? AND sha256 = ? AND stored > 0`,
		[]any{t.owner, f.SHA256[:]}, func(row sqlstore.Scanner) error { return row.Scan(&id, &size) })
	if err != nil || id == 0 {
		return 0, err
	}
	// The user may mask this stream: the file must be one of its files.
	err = t.Query(ctx, `SELECT (SELECT count(*) FROM blob_refs r WHERE r.owner = ? AND r.stream = ? AND r.sha256 = ?) +
  (SELECT count(*) FROM document_versions v JOIN documents d ON d.owner = v.owner AND d.id = v.document
  WHERE d.owner = ? AND d.stream = ? AND v.sha256 = ?)`,
		[]any{t.owner, t.in.Stream, f.SHA256[:], t.owner, t.in.Stream, f.SHA256[:]},
		func(row sqlstore.Scanner) error { return row.Scan(&refs) })
	if err != nil || refs == 0 {
		return 0, err
	}
	if err := redact.CheckTokens(f.Tokens, size); err != nil {
		return 0, err
	}
	if err := t.lines.cold.Whole(ctx, t, t.owner, id); err != nil {
		return 0, err
	}
	sum, err := t.chunks(ctx, id, size, f.Tokens)
	if err != nil || bytes.Equal(sum, f.SHA256[:]) {
		return 0, err
	}
	return 1, t.readdress(ctx, id, f.SHA256[:], sum)
}

// chunks writes tokens over a file's content, and returns the hash of the result.
func (t *maskTx) chunks(ctx context.Context, id, size int64, list []redact.Token) ([]byte, error) {
	h := sha256.New()
	for at := int64(0); at < size; {
		var data []byte
		err := t.Query(ctx, `SELECT data FROM blob_chunks WHERE owner = ? AND blob = ? AND place = ?`,
			[]any{t.owner, id, at}, func(row sqlstore.Scanner) error { return row.Scan(&data) })
		if err != nil {
			return nil, err
		}
		if len(data) == 0 {
			return nil, server.ErrNotFound
		}
		now := bytes.Clone(data)
		for _, token := range list {
			if from := int64(token.Start) - at; from < 0 {
				if -from < int64(len(token.Text)) {
					copy(now, token.Text[-from:])
				}
			} else if from < int64(len(now)) {
				copy(now[from:], token.Text)
			}
		}
		if !bytes.Equal(now, data) {
			_, err := t.Exec(ctx, `UPDATE blob_chunks SET data = ? WHERE owner = ? AND blob = ? AND place = ?`,
				now, t.owner, id, at)
			if err != nil {
				return nil, err
			}
		}
		h.Write(now)
		at += int64(len(data))
	}
	return h.Sum(nil), nil
}

// Rows of streams and of documents of a user.
const (
	ownStreams   = `(owner, stream) IN (SELECT owner, id FROM streams WHERE owner = ?)`
	ownDocuments = `(owner, document) IN (SELECT d.owner, d.id FROM documents d
  JOIN streams s ON s.owner = d.owner AND s.id = d.stream WHERE s.owner = ?)`
)

// readdress changes the address of a content. If the user has the new content already, that one stays.
func (t *maskTx) readdress(ctx context.Context, id int64, was, now []byte) error {
	var other int64
	err := t.Lock(ctx, `SELECT id FROM blobs WHERE owner = ? AND sha256 = ?`, []any{t.owner, now},
		func(row sqlstore.Scanner) error { return row.Scan(&other) })
	if err != nil {
		return err
	}
	type statement struct {
		query string
		args  []any
	}
	var all []statement
	if other != 0 { // the user sends the masked content too, perhaps at this moment: the whole one replaces that
		if err := sqlstore.RemoveContent(ctx, t, t.owner, other); err != nil {
			return err
		}
		all = append(all, statement{`DELETE FROM blobs WHERE owner = ? AND id = ?`, []any{t.owner, other}})
	}
	all = append(all,
		statement{`UPDATE blobs SET sha256 = ? WHERE owner = ? AND id = ?`, []any{now, t.owner, id}},
		statement{`DELETE FROM blob_refs WHERE sha256 = ? AND ` + ownStreams + ` AND EXISTS (
  SELECT 1 FROM blob_refs b WHERE b.owner = blob_refs.owner AND b.stream = blob_refs.stream
    AND b.name_key = blob_refs.name_key AND b.sha256 = ?)`,
			[]any{was, t.owner, now}},
		statement{`UPDATE blob_refs SET sha256 = ? WHERE sha256 = ? AND ` + ownStreams, []any{now, was, t.owner}},
		statement{`DELETE FROM document_versions WHERE sha256 = ? AND ` + ownDocuments + ` AND EXISTS (
  SELECT 1 FROM document_versions b WHERE b.owner = document_versions.owner AND
    b.document = document_versions.document AND b.rank = document_versions.rank
    AND b.n = document_versions.n AND b.change = document_versions.change AND b.sha256 = ?)`,
			[]any{was, t.owner, now}},
		statement{`UPDATE document_versions SET sha256 = ? WHERE sha256 = ? AND ` + ownDocuments,
			[]any{now, was, t.owner}},
	)
	for _, s := range all {
		if _, err := t.Exec(ctx, s.query, s.args...); err != nil {
			return err
		}
	}
	return nil
}

// Masks implements server.Masker but for Scrub. It is set once, when a store opens.
type Masks struct {
	db    sqlstore.Writer
	lines *Lines
}

// NewMasks returns the masks of a store.
func NewMasks(db sqlstore.DB, lines *Lines) Masks {
	return Masks{sqlstore.Writer{DB: db, How: sqlstore.Erase}, lines}
}

// Mask implements server.Masker.
func (m *Masks) Mask(ctx context.Context, in *server.Masking) (protocol.Masked, error) {
	var t maskTx
	var done protocol.Masked
	err := m.db.Write(ctx, func(d sqlstore.Dialect) (err error) {
		done = protocol.Masked{}
		t = maskTx{Dialect: d, in: in, lines: m.lines}
		if err := d.Hold(ctx, sqlstore.HeldStream, in.Stream); err != nil {
			return err
		}
		if err := t.load(ctx); err != nil {
			return err
		}
		if done, err = t.all(ctx); err != nil || !done.Any() {
			return err
		}
		if done.Lines > 0 {
			if err := sqlstore.ClearMasked(ctx, d, sqlstore.OwnedStream{Stream: in.Stream, Owner: t.owner}); err != nil {
				return fmt.Errorf("remove what is derived: %w", err)
			}
			if err := sqlstore.ScrubLater(ctx, d); err != nil {
				return err
			}
		}
		return t.record(ctx, done)
	})
	if errors.Is(err, redact.ErrNoToken) {
		err = fmt.Errorf("%w: %w", server.ErrNoToken, err)
	}
	if err != nil {
		return protocol.Masked{}, fmt.Errorf("mask: %w", err)
	}
	if done.Any() {
		m.db.Tell(t.change)
	}
	return done, nil
}

// Maskings implements server.Masker.
func (m *Masks) Maskings(ctx context.Context, scope server.Scope) ([]server.MaskedSession, error) {
	var f sqlstore.Filter
	f.Own(scope)
	out, err := sqlstore.List(ctx, m.db, `
SELECT s.owner, s.session_id, s.machine, m.asked_by, m.at, m.lines, m.checkpoints, m.files
FROM maskings m JOIN streams s ON s.owner = m.owner AND s.id = m.stream `+f.Where()+`
ORDER BY m.at DESC, s.id, m.asked_by`, f.Args,
		func(row sqlstore.Scanner) (x server.MaskedSession, err error) {
			var at int64
			n := &x.Masked
			err = row.Scan(&x.Owner, &x.SessionID, &x.Machine, &x.By, &at, &n.Lines, &n.Checkpoints, &n.Files)
			x.At = sqlstore.Moment(at)
			return x, err
		})
	return out, sqlstore.Wrap(err, "list what was masked")
}

// again finds the lines of a batch that the server has masked before: in any epoch and generation of the stream, with
// the same bytes apart from the tokens. It returns the batch to store, in which they have their tokens again, and the
// lines to note. The batch that it was given does not change. Of a copy they are known.
func (m *Masks) again(ctx context.Context, d sqlstore.Dialect, stream int64, b *server.Batch) (*server.Batch, []int64,
	error) {
	if len(b.Lines) == 0 {
		return b, nil, nil
	}
	if len(b.Masked) > 0 {
		return b, b.Masked, nil
	}
	from, to := b.Lines[0].Index, b.Lines[0].Index
	for _, l := range b.Lines {
		from, to = min(from, l.Index), max(to, l.Index)
	}
	places, err := sqlstore.List(ctx, d, `
SELECT epoch, generation, line FROM masked_lines WHERE owner = ? AND stream = ? AND line >= ? AND line <= ?
ORDER BY line, epoch, generation`, []any{b.Owner, stream, from, to},
		func(row sqlstore.Scanner) (p [3]int64, err error) { return p, row.Scan(&p[0], &p[1], &p[2]) })
	if err != nil {
		return b, nil, fmt.Errorf("look for masked lines: %w", err)
	}
	if len(places) == 0 {
		return b, nil, nil
	}
	held := map[int64][][]byte{}
	for _, p := range places {
		at := Place{Owner: b.Owner, Stream: stream, Epoch: p[0], Generation: p[1]}
		l, ok, err := m.lines.TryOne(ctx, d, at, p[2])
		if err != nil {
			return b, nil, fmt.Errorf("read masked line: %w", err)
		}
		if ok {
			held[p[2]] = append(held[p[2]], l.Raw)
		}
	}
	now, list := swap(b, held)
	return now, list, nil
}

// swap replaces lines by held bytes that differ from them only where those have tokens.
func swap(b *server.Batch, held map[int64][][]byte) (*server.Batch, []int64) {
	now := *b
	now.Lines = append([]server.Line(nil), b.Lines...)
	var list []int64
	for i := range now.Lines {
		l := &now.Lines[i]
		for _, raw := range held[l.Index] {
			if _, only := redact.Changes(l.Raw, raw); only && len(raw) > 0 && l.Kind != server.Oversize {
				l.Raw = raw
				list = append(list, l.Index)
				break
			}
		}
	}
	return &now, list
}

// Known returns the job to write for one of a stream, masked so often: lines that the server has masked before get
// their tokens again. list are the lines to Settle.
func (m *Masks) Known(ctx context.Context, d sqlstore.Dialect, stream, masked int64, j *Job) (*Job, []int64, error) {
	if masked == 0 && len(j.Batch.Masked) == 0 {
		return j, nil, nil
	}
	b, list, err := m.again(ctx, d, stream, j.Batch)
	if b == j.Batch {
		return j, list, err
	}
	return &Job{Batch: b}, list, err // what was packed lacks the tokens
}

// Settle writes what comes with the lines of a batch once those are written: which were retired before they came, and
// a list of those that the server has masked.
func (m *Masks) Settle(ctx context.Context, d sqlstore.Dialect, at Place, b *server.Batch, list []int64) error {
	for _, r := range b.Retired {
		if err := noteRetired(ctx, d, at, r); err != nil {
			return err
		}
	}
	return m.note(ctx, d, at, list)
}

// note lists lines of a generation as masked by the server.
func (m *Masks) note(ctx context.Context, d sqlstore.Dialect, at Place, list []int64) error {
	if len(list) == 0 {
		return nil
	}
	// A stream that has such lines counts as masked: others of its lines are looked up when they come again.
	if _, err := d.Exec(ctx, `UPDATE streams SET masked = 1 WHERE owner = ? AND id = ? AND masked = 0`,
		at.Owner, at.Stream); err != nil {
		return fmt.Errorf("write stream: %w", err)
	}
	for _, line := range list {
		if err := note(ctx, d, at, line); err != nil {
			return fmt.Errorf("list masked line: %w", err)
		}
	}
	return nil
}
