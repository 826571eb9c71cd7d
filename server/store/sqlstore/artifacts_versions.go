package sqlstore

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ccship/ccship/server"
)

// history is a document's versions, numbered through all epochs.
type history struct {
	server.Address
	document int64
	lives    []life
}

// life is one epoch's part of it: its versions 1 to last are base+1 to base+last.
type life struct{ rank, base, last int64 }

// history finds a document.
func (p *Artifacts) history(ctx context.Context, scope server.Scope, ref server.Ref,
	path string) (h history, err error) {
	if h.Address, err = Resolve(ctx, p.db, scope, ref, (*Filter).artifacts); err != nil {
		return h, err
	}
	h.document, err = Number(ctx, p.db, `SELECT id FROM documents WHERE owner = ? AND stream = ? AND path_key = ?`,
		h.Owner, h.Stream, Key(path))
	if err != nil {
		return h, fmt.Errorf("find document: %w", err)
	}
	if h.document == 0 {
		return h, fmt.Errorf("document %.100q: %w", path, server.ErrNotFound)
	}
	var base int64
	err = p.db.Query(ctx, `SELECT rank, max(n) FROM document_versions WHERE owner = ? AND document = ?
GROUP BY rank ORDER BY rank`, []any{h.Owner, h.document}, func(row Scanner) error {
		l := life{base: base}
		err := row.Scan(&l.rank, &l.last)
		base += l.last
		h.lives = append(h.lives, l)
		return err
	})
	return h, Wrap(err, "find document")
}

// end returns the number of the newest version.
func (h *history) end() int64 {
	if len(h.lives) == 0 {
		return 0
	}
	last := h.lives[len(h.lives)-1]
	return last.base + last.last
}

// locate finds version number: the epoch's rank and the version's own number. rank 0: there is none.
func (h *history) locate(number int64) (rank, n int64) {
	for _, l := range h.lives {
		if number > l.base && number <= l.base+l.last {
			return l.rank, number - l.base
		}
	}
	return 0, 0
}

// number returns the public number of version n of an epoch.
func (h *history) number(rank, n int64) int64 {
	for _, l := range h.lives {
		if l.rank == rank {
			return l.base + n
		}
	}
	return n // the epoch began later
}

const selectVersion = `
SELECT v.rank, v.n, v.at, v.change, v.author, v.size, v.sha256, v.too_large, v.line, e.name, ` + isStored + `
FROM document_versions v JOIN documents d ON d.owner = v.owner AND d.id = v.document
JOIN streams s ON s.owner = d.owner AND s.id = d.stream
JOIN artifact_epochs e ON e.owner = d.owner AND e.stream = d.stream AND e.rank = v.rank
WHERE v.owner = ? AND v.document = ? AND NOT EXISTS (SELECT 1 FROM document_versions w
  WHERE w.owner = v.owner AND w.document = v.document AND w.rank = v.rank AND w.n = v.n AND w.id > v.id) `

// versions runs selectVersion with what follows.
func (p *Artifacts) versions(ctx context.Context, h *history, rest string,
	args ...any) (out []server.Version, err error) {
	err = p.db.Query(ctx, selectVersion+rest, append([]any{h.Owner, h.document}, args...), func(row Scanner) error {
		var v server.Version
		var rank, n, at, large, stored int64
		var sum []byte
		err := row.Scan(&rank, &n, &at, &v.Change, &v.By, &v.Size, &sum, &large, &v.Line, &v.Epoch, &stored)
		v.N, v.At, v.SHA256 = h.number(rank, n), Moment(at), fmt.Sprintf("%x", sum)
		v.TooLarge, v.Stored = large == 1, stored == 1
		out = append(out, v)
		return err
	})
	return out, Wrap(err, "list versions")
}

// Versions implements server.Artifacts.
func (p *Artifacts) Versions(ctx context.Context, scope server.Scope, ref server.Ref, path string,
	page server.VersionPage) (server.Versions, error) {
	h, err := p.history(ctx, scope, ref, path)
	if err != nil {
		return server.Versions{}, err
	}
	last := h.end()
	if page.Before > 0 {
		last = min(last, page.Before-1)
	}
	rank, n := h.locate(last)
	if rank == 0 {
		return server.Versions{List: []server.Version{}}, nil
	}
	list, err := p.versions(ctx, &h, `AND (v.rank < ? OR v.rank = ? AND v.n <= ?) ORDER BY v.rank DESC, v.n DESC LIMIT ?`,
		rank, rank, n, page.Limit+1)
	out := server.Versions{List: list}
	if len(list) > page.Limit {
		out.List = list[:page.Limit]
		if page.Limit > 0 {
			out.Next = list[page.Limit-1].N
		}
	}
	return out, err
}

// Content implements server.Artifacts.
func (p *Artifacts) Content(ctx context.Context, scope server.Scope, ref server.Ref, path string,
	number int64) (v server.Version, content io.Reader, err error) {
	h, err := p.history(ctx, scope, ref, path)
	if err != nil {
		return v, nil, err
	}
	if number == 0 {
		number = h.end()
	}
	rank, n := h.locate(number)
	list, err := p.versions(ctx, &h, `AND v.rank = ? AND v.n = ?`, rank, n)
	if err != nil {
		return v, nil, err
	}
	if len(list) == 0 {
		return v, nil, fmt.Errorf("version %d: %w", number, server.ErrNotFound)
	}
	if v = list[0]; !v.Stored {
		return v, nil, fmt.Errorf("version %d: %w", number, server.ErrNoContent)
	}
	_, content, err = p.open(ctx, h.Owner, v.SHA256)
	return v, content, err
}

// RemoveArtifacts deletes a stream's artifacts, and the contents that no other stream of its owner refers to.
func RemoveArtifacts(ctx context.Context, l Dialect, x OwnedStream) error {
	var sums [][]byte
	for _, query := range []string{
		`SELECT DISTINCT sha256 FROM blob_refs WHERE owner = ? AND stream = ?`,
		`SELECT DISTINCT v.sha256 FROM document_versions v JOIN documents d ON d.owner = v.owner AND d.id = v.document
WHERE d.owner = ? AND d.stream = ?`,
	} {
		err := l.Query(ctx, query, []any{x.Owner, x.Stream}, func(row Scanner) error {
			var sum []byte
			err := row.Scan(&sum)
			sums = append(sums, sum)
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, query := range []string{
		`DELETE FROM document_versions WHERE (owner, document) IN (
  SELECT owner, id FROM documents WHERE owner = ? AND stream = ?)`,
		`DELETE FROM documents WHERE owner = ? AND stream = ?`,
		`DELETE FROM checkpoints WHERE owner = ? AND stream = ?`,
		`DELETE FROM blob_refs WHERE owner = ? AND stream = ?`,
		`DELETE FROM link_requests WHERE owner = ? AND stream = ?`,
		`DELETE FROM artifact_epochs WHERE owner = ? AND stream = ?`,
	} {
		if _, err := l.Exec(ctx, query, x.Owner, x.Stream); err != nil {
			return err
		}
	}
	slices.SortFunc(sums, bytes.Compare)
	for _, sum := range slices.CompactFunc(sums, bytes.Equal) {
		if err := removeUnnamed(ctx, l, x.Owner, sum); err != nil {
			return err
		}
	}
	return nil
}

// removeUnnamed deletes a content without references. A writer that is about to refer to it holds its row or waits for
// it.
func removeUnnamed(ctx context.Context, l Dialect, owner int64, sum []byte) error {
	id, err := Number(ctx, Locked{l}, `SELECT id FROM blobs WHERE owner = ? AND sha256 = ?`, owner, sum)
	if err != nil || id == 0 {
		return err
	}
	named, err := Number(ctx, l, `
SELECT CASE WHEN EXISTS (SELECT 1 FROM blob_refs r JOIN streams s ON s.owner = r.owner AND s.id = r.stream
    WHERE r.sha256 = ? AND s.owner = ?)
  OR EXISTS (SELECT 1 FROM document_versions v JOIN documents d ON d.owner = v.owner AND d.id = v.document
    JOIN streams s ON s.owner = d.owner AND s.id = d.stream WHERE v.sha256 = ? AND s.owner = ?) THEN 1 ELSE 0 END`,
		sum, owner, sum, owner)
	if err != nil || named == 1 {
		return err
	}
	if err := RemoveContent(ctx, l, owner, id); err != nil {
		return err
	}
	_, err = l.Exec(ctx, `DELETE FROM blobs WHERE owner = ? AND id = ?`, owner, id)
	return err
}

// revive has a file uploaded again whose content retention removed, for a session that was not dropped.
func (d streamTx) revive(ctx context.Context, x *upload) error {
	dropped, err := Number(ctx, d, `SELECT retired FROM streams WHERE owner = ? AND id = ?`, d.owner, d.stream)
	if err != nil || dropped > 0 {
		return err
	}
	n, err := d.Exec(ctx, `UPDATE blobs SET have = 0, stored = 0, tries = tries + 1, retired = 0
WHERE owner = ? AND id = ? AND retired > 0`, x.owner, x.id)
	if n > 0 {
		x.have, x.stored = 0, 0
	}
	return err
}

// unlessRetired is server.ErrRetired for a file whose content retention removed.
func (p *Artifacts) unlessRetired(ctx context.Context, x upload) error {
	gone, err := Number(ctx, p.db, `SELECT retired FROM blobs WHERE owner = ? AND id = ?`, x.owner, x.id)
	if err == nil && gone > 0 {
		err = server.ErrRetired
	}
	return err
}

// AuditBlobs implements server.ArtifactIngester.
func (p *Artifacts) AuditBlobs(ctx context.Context, found func(problem string),
	progress func(blobs, bytes int64)) error {
	var last, blobs, read int64
	for {
		var x upload
		var sum []byte
		err := p.db.Query(ctx, `
SELECT owner, id, size, sha256 FROM blobs WHERE stored > 0 AND retired = 0 AND id > ? ORDER BY id LIMIT 1`,
			[]any{last}, func(row Scanner) error { return row.Scan(&x.owner, &x.id, &x.size, &sum) })
		if err != nil {
			return fmt.Errorf("read files: %w", err)
		}
		if x.id == 0 {
			return nil
		}
		last = x.id
		got, err := hashOf(p.content(ctx, x))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, server.ErrCold):
			return fmt.Errorf("read files: %w", err)
		case err != nil && p.gone(ctx, x): // forgotten meanwhile
			continue
		case err != nil:
			found(fmt.Sprintf("file %s: %v", hex.EncodeToString(sum), err))
		case !bytes.Equal(got, sum):
			found(fmt.Sprintf("file %s: its bytes have another hash", hex.EncodeToString(sum)))
		}
		blobs, read = blobs+1, read+x.size
		progress(blobs, read)
	}
}

func (p *Artifacts) gone(ctx context.Context, x upload) bool {
	there, err := Number(ctx, p.db, `SELECT id FROM blobs WHERE owner = ? AND id = ?`, x.owner, x.id)
	return err == nil && there == 0
}

var _ interface {
	server.Artifacts
	server.ArtifactIngester
} = (*Artifacts)(nil)

// ListForgotten implements server.Library.
func (p *Artifacts) ListForgotten(ctx context.Context, scope server.Scope) (out []server.Forgotten, err error) {
	var f Filter
	f.Own(scope)
	err = p.db.Query(ctx, `SELECT s.owner, s.session_id, s.at, s.lines FROM forgotten s `+f.Where()+`
ORDER BY s.at DESC, s.owner, s.session_id`, f.Args, func(row Scanner) error {
		var x server.Forgotten
		var at int64
		err := row.Scan(&x.Owner, &x.SessionID, &at, &x.Lines)
		x.At = Moment(at)
		out = append(out, x)
		return err
	})
	return out, Wrap(err, "list what was forgotten")
}

// RemoveContent deletes the bytes of a file: those in the database, and in cold storage once the transaction is
// durable.
func RemoveContent(ctx context.Context, l Dialect, owner, blob int64) error {
	if _, err := l.Exec(ctx, `DELETE FROM blob_chunks WHERE owner = ? AND blob = ?`, owner, blob); err != nil {
		return err
	}
	_, err := l.Exec(ctx, `UPDATE cold_objects SET state = 2, at = ?
WHERE owner = ? AND stream = 0 AND blob = ? AND state = 1`,
		Micros(time.Now()), owner, blob)
	return err
}
