package sqlstore

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/ccship/ccship/server"
)

// PutDocuments implements server.ArtifactIngester.
func (p *Artifacts) PutDocuments(ctx context.Context, b *server.DocumentBatch) error {
	w := Write{Owner: b.Owner, Quota: b.Quota, Head: &b.Head}
	for _, e := range b.Events {
		w.Bytes += server.RowBytes + int64(len(e.Content))
	}
	err := p.inStream(ctx, w, Micros(b.Received), server.AboutDocuments, func(d streamTx) error {
		if err := d.contents(ctx, b.Events); err != nil {
			return fmt.Errorf("write contents: %w", err)
		}
		for i := range b.Events {
			if err := d.event(ctx, &b.Events[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return Wrap(err, "store documents")
}

// contents stores the events' contents and protects stored ones from removal. All writers do this in the order of
// hashes, to avoid deadlocks.
func (d streamTx) contents(ctx context.Context, events []server.DocumentEvent) error {
	var list []*server.DocumentEvent
	for i := range events {
		if events[i].SHA256 != nil && brings(&events[i]) {
			list = append(list, &events[i])
		}
	}
	slices.SortStableFunc(list, func(a, b *server.DocumentEvent) int { return bytes.Compare(a.SHA256, b.SHA256) })
	for _, e := range list {
		if e.Content != nil {
			if err := d.content(ctx, e.SHA256, e.Content); err != nil {
				return err
			}
			continue
		}
		_, err := d.Exec(ctx, `UPDATE blobs SET touched = ? WHERE owner = ? AND sha256 = ?`, d.now, d.owner, e.SHA256)
		if err != nil {
			return err
		}
	}
	return nil
}

// brings reports whether an event brings a version with a content, or with what is known of one.
func brings(e *server.DocumentEvent) bool {
	return e.Version > 0 && (e.Change == server.Linked || e.Change == server.Modified)
}

// content stores a complete content whose hash has been checked, and replaces an unfinished upload of it.
func (d streamTx) content(ctx context.Context, sum, content []byte) error {
	var id, stored int64
	err := d.Query(ctx, `
INSERT INTO blobs (owner, sha256, size, have, stored, touched, tries) VALUES (?, ?, ?, 0, 0, ?, 0)
ON CONFLICT (owner, sha256) DO UPDATE SET touched = excluded.touched RETURNING id, stored`,
		[]any{d.owner, sum, int64(len(content)), d.now}, func(row Scanner) error { return row.Scan(&id, &stored) })
	if err != nil || stored > 0 {
		return err
	}
	if _, err := d.Exec(ctx, `DELETE FROM blob_chunks WHERE owner = ? AND blob = ?`, d.owner, id); err != nil {
		return err
	}
	if len(content) > 0 {
		_, err := d.Exec(ctx, `INSERT INTO blob_chunks (owner, blob, place, data) VALUES (?, ?, 0, ?)`,
			d.owner, id, content)
		if err != nil {
			return err
		}
	}
	_, err = d.Exec(ctx, `UPDATE blobs SET size = ?, have = ?, stored = ?, tries = tries + 1
WHERE owner = ? AND id = ?`, int64(len(content)), int64(len(content)), d.now, d.owner, id)
	return err
}

// event stores what happened to a document.
func (d streamTx) event(ctx context.Context, e *server.DocumentEvent) error {
	if e.LinkRequest != "" {
		if err := d.answer(ctx, e); err != nil {
			return fmt.Errorf("answer link request: %w", err)
		}
	}
	if e.Change == server.Refused {
		return nil
	}
	id, err := d.document(ctx, e)
	if err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	sum, size := e.SHA256, e.Size
	switch {
	case e.Version > 0 && e.Change == server.Deleted:
		sum, size = nil, 0 // what it says is of the version before
	case !brings(e) || sum == nil && !e.TooLarge:
		return nil
	}
	_, err = d.Exec(ctx, `
INSERT INTO document_versions (owner, document, rank, n, change, author, at, size, sha256, too_large, line)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (owner, document, rank, n, change, sha256) DO NOTHING`,
		d.owner, id, d.rank, e.Version, e.Change, CleanText(e.By), Micros(e.At), size, NotNil(sum), Flag(e.TooLarge),
		e.Line)
	return Wrap(err, "write version")
}

// document finds or makes the document of an event. The latest event decides whether it is linked, not the last to
// arrive.
func (d streamTx) document(ctx context.Context, e *server.DocumentEvent) (id int64, err error) {
	err = d.Query(ctx, `
INSERT INTO documents (owner, stream, path_key, path, linked, added_at, added_by, unlinked_at, link_rank,
  link_version, link_at)
VALUES (?, ?, ?, ?, 0, 0, '', 0, 0, 0, 0)
ON CONFLICT (owner, stream, path_key) DO UPDATE SET path = excluded.path RETURNING id`,
		[]any{d.owner, d.stream, Key(e.Path), CleanText(e.Path)}, func(row Scanner) error { return row.Scan(&id) })
	if err != nil {
		return 0, err
	}
	added, by, unlinked := Micros(e.AddedAt), "", int64(0)
	switch e.Change {
	case server.Linked:
		by = CleanText(e.By)
		if added == 0 {
			added = Micros(e.At)
		}
	case server.Unlinked:
		unlinked = Micros(e.At)
	}
	_, err = d.Exec(ctx, `
UPDATE documents SET linked = ?, unlinked_at = ?, link_rank = ?, link_version = ?, link_at = ?,
  added_at = CASE WHEN CAST(? AS bigint) > 0 THEN CAST(? AS bigint) ELSE added_at END,
  added_by = CASE WHEN CAST(? AS text) <> '' THEN CAST(? AS text) ELSE added_by END
WHERE owner = ? AND id = ?
  AND (link_rank < ? OR link_rank = ? AND (link_version < ? OR link_version = ? AND link_at <= ?))`,
		Flag(e.Change != server.Unlinked), unlinked, d.rank, e.Version, Micros(e.At), added, added, by, by,
		d.owner, id, d.rank, d.rank, e.Version, e.Version, Micros(e.At))
	return id, err
}

// isStored is 1 when the content of version v of a document of stream s is stored.
const isStored = `CASE WHEN EXISTS (
  SELECT 1 FROM blobs b WHERE b.owner = s.owner AND b.sha256 = v.sha256 AND b.stored > 0) THEN 1 ELSE 0 END`

// maxDocuments limits a listing.
const maxDocuments = 1000

// Documents implements server.Artifacts.
func (p *Artifacts) Documents(ctx context.Context, scope server.Scope, ref server.Ref) ([]server.Document, error) {
	x, err := Resolve(ctx, p.db, scope, ref, (*Filter).artifacts)
	if err != nil {
		return nil, err
	}
	out := []server.Document{}
	err = p.db.Query(ctx, `
SELECT d.path, d.linked, d.added_at, d.added_by, d.unlinked_at,
  (SELECT CAST(coalesce(sum(m.n), 0) AS bigint) FROM
    (SELECT max(w.n) AS n FROM document_versions w WHERE w.owner = d.owner AND w.document = d.id
      GROUP BY w.rank) m),
  coalesce(v.at, 0), coalesce(v.author, ''), coalesce(v.change, ''), coalesce(v.size, 0),
  coalesce(v.sha256, d.path_key), coalesce(v.too_large, 0), `+isStored+`
FROM documents d JOIN streams s ON s.owner = d.owner AND s.id = d.stream
LEFT JOIN document_versions v ON v.owner = d.owner AND v.id = (
  SELECT w.id FROM document_versions w WHERE w.owner = d.owner AND w.document = d.id
  ORDER BY w.rank DESC, w.n DESC, w.id DESC LIMIT 1)
WHERE d.owner = ? AND d.stream = ? ORDER BY d.added_at, d.id LIMIT ?`,
		[]any{x.Owner, x.Stream, maxDocuments}, func(row Scanner) error {
			doc := server.Document{SessionID: x.SessionID, Machine: x.Machine, Host: x.Host}
			var linked, added, unlinked, changed, large, stored int64
			var change string
			var sum []byte
			err := row.Scan(&doc.Path, &linked, &added, &doc.AddedBy, &unlinked, &doc.Versions, &changed, &doc.ChangedBy,
				&change, &doc.Size, &sum, &large, &stored)
			doc.Linked, doc.TooLarge, doc.Stored = linked == 1, large == 1, stored == 1
			doc.AddedAt, doc.UnlinkedAt, doc.ChangedAt = Moment(added), Moment(unlinked), Moment(changed)
			doc.Deleted = change == server.Deleted
			if change != "" {
				doc.SHA256 = fmt.Sprintf("%x", sum)
			}
			out = append(out, doc)
			return err
		})
	return out, Wrap(err, "list documents")
}
