package store

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/ccship/ccship/server"
)

// removeArtifacts deletes a stream's artifacts, and the contents that no other stream of its owner refers to.
func removeArtifacts(ctx context.Context, l dialect, x owned) error {
	var sums [][]byte
	for _, query := range []string{
		`SELECT DISTINCT sha256 FROM blob_refs WHERE stream = ?`,
		`SELECT DISTINCT v.sha256 FROM document_versions v JOIN documents d ON d.id = v.document WHERE d.stream = ?`,
	} {
		err := l.query(ctx, query, []any{x.stream}, func(row scanner) error {
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
		`DELETE FROM document_versions WHERE document IN (SELECT id FROM documents WHERE stream = ?)`,
		`DELETE FROM documents WHERE stream = ?`,
		`DELETE FROM checkpoints WHERE stream = ?`,
		`DELETE FROM blob_refs WHERE stream = ?`,
		`DELETE FROM link_requests WHERE stream = ?`,
		`DELETE FROM artifact_epochs WHERE stream = ?`,
	} {
		if _, err := l.exec(ctx, query, x.stream); err != nil {
			return err
		}
	}
	slices.SortFunc(sums, bytes.Compare)
	for _, sum := range slices.CompactFunc(sums, bytes.Equal) {
		if err := removeUnnamed(ctx, l, x.owner, sum); err != nil {
			return err
		}
	}
	return nil
}

// removeUnnamed deletes a content without references. A writer that is about to refer to it holds its row or waits for
// it.
func removeUnnamed(ctx context.Context, l dialect, owner int64, sum []byte) error {
	id, err := one(ctx, l, `SELECT id FROM blobs WHERE owner = ? AND sha256 = ?`+l.lock(), owner, sum)
	if err != nil || id == 0 {
		return err
	}
	named, err := one(ctx, l, `
SELECT CASE WHEN EXISTS (SELECT 1 FROM blob_refs r JOIN streams s ON s.id = r.stream WHERE r.sha256 = ? AND s.owner = ?)
  OR EXISTS (SELECT 1 FROM document_versions v JOIN documents d ON d.id = v.document JOIN streams s ON s.id = d.stream
    WHERE v.sha256 = ? AND s.owner = ?) THEN 1 ELSE 0 END`, sum, owner, sum, owner)
	if err != nil || named == 1 {
		return err
	}
	if _, err := l.exec(ctx, `DELETE FROM blob_chunks WHERE blob = ?`, id); err != nil {
		return err
	}
	_, err = l.exec(ctx, `DELETE FROM blobs WHERE id = ?`, id)
	return err
}

// AuditBlobs implements server.ArtifactIngester.
func (p *artifacts) AuditBlobs(ctx context.Context, found func(problem string),
	progress func(blobs, bytes int64)) error {
	var last, blobs, read int64
	for {
		var x upload
		var sum []byte
		err := p.reader.query(ctx, `SELECT id, size, sha256 FROM blobs WHERE stored > 0 AND id > ? ORDER BY id LIMIT 1`,
			[]any{last}, func(row scanner) error { return row.Scan(&x.id, &x.size, &sum) })
		if err != nil {
			return fmt.Errorf("read files: %w", err)
		}
		if x.id == 0 {
			return nil
		}
		last = x.id
		got, err := hashOf(&blobReader{ctx: ctx, l: p.reader, blob: x.id, size: x.size})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && p.gone(ctx, x.id): // forgotten meanwhile
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

func (p *artifacts) gone(ctx context.Context, id int64) bool {
	there, err := one(ctx, p.reader, `SELECT id FROM blobs WHERE id = ?`, id)
	return err == nil && there == 0
}

var _ interface {
	server.Artifacts
	server.ArtifactIngester
} = (*artifacts)(nil)

// ListForgotten implements server.Library.
func (p *artifacts) ListForgotten(ctx context.Context, scope server.Scope) (out []server.Forgotten, err error) {
	var f filter
	f.own(scope)
	err = p.reader.query(ctx, `SELECT s.owner, s.session_id, s.at, s.lines FROM forgotten s `+f.where()+`
ORDER BY s.at DESC, s.owner, s.session_id`, f.args, func(row scanner) error {
		var x server.Forgotten
		var at int64
		err := row.Scan(&x.Owner, &x.SessionID, &at, &x.Lines)
		x.At = moment(at)
		out = append(out, x)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list what was forgotten: %w", err)
	}
	return out, nil
}
