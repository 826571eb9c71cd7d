package sqlstore

import (
	"bytes"
	"context"
	"crypto/rand"
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

const selectLinkRequest = `
SELECT w.id, s.session_id, s.machine, s.host, w.path, w.link, w.asked_by, w.asked, w.state, w.reason, w.answered
FROM link_requests w JOIN streams s ON s.owner = w.owner AND s.id = w.stream `

func scanLinkRequest(row Scanner) (w server.LinkRequest, err error) {
	var link, asked, answered int64
	var state string
	err = row.Scan(&w.ID, &w.SessionID, &w.Machine, &w.Host, &w.Path, &link, &w.By, &asked, &state, &w.Reason, &answered)
	w.Link, w.State, w.Created, w.Answered = link == 1, server.LinkRequestState(state), Moment(asked), Moment(answered)
	return w, err
}

func listLinkRequests(ctx context.Context, l Dialect, rest string, args ...any) (out []server.LinkRequest, err error) {
	out = []server.LinkRequest{}
	err = l.Query(ctx, selectLinkRequest+rest, args, func(row Scanner) error {
		w, err := scanLinkRequest(row)
		out = append(out, w)
		return err
	})
	return out, err
}

// RequestLink implements server.Artifacts.
func (p *Artifacts) RequestLink(ctx context.Context, scope server.Scope, ref server.Ref,
	n server.LinkRequestInput) (server.LinkRequest, error) {
	if err := server.CheckPath(n.Path); err != nil {
		return server.LinkRequest{}, err
	}
	var out server.LinkRequest
	var x server.Address
	err := p.db.Write(ctx, func(l Dialect) (err error) {
		if x, err = Resolve(ctx, l, scope, ref, (*Filter).Own); err != nil {
			return err
		}
		if x.Machine == "" {
			return server.ErrNoDaemon
		}
		// This row lock keeps two identical requests from being stored twice.
		_, err = l.Exec(ctx, `UPDATE streams SET host = host WHERE owner = ? AND id = ?`, x.Owner, x.Stream)
		if err != nil {
			return err
		}
		out, err = addLinkRequest(ctx, l, x, n)
		return err
	})
	if err != nil {
		return server.LinkRequest{}, fmt.Errorf("store link request: %w", err)
	}
	p.db.Tell(server.Change{About: server.AboutDocuments, Stream: x.Stream, SessionID: x.SessionID, Machine: x.Machine,
		Owner: x.Owner, Project: x.ProjectHash, At: n.At})
	return out, nil
}

// addLinkRequest stores a link request about a stream, or returns an equal one that waits.
func addLinkRequest(ctx context.Context, l Dialect, x server.Address,
	n server.LinkRequestInput) (server.LinkRequest, error) {
	waiting, err := listLinkRequests(ctx, l, `WHERE w.owner = ? AND w.stream = ? AND w.state = 'waiting'
ORDER BY w.num`, x.Owner, x.Stream)
	if err != nil {
		return server.LinkRequest{}, err
	}
	taken := false
	for _, w := range waiting {
		if w.Path != CleanText(n.Path) {
			continue
		}
		if w.Link == n.Link {
			return w, nil
		}
		if _, err := l.Exec(ctx, `DELETE FROM link_requests WHERE owner = ? AND id = ?`, x.Owner, w.ID); err != nil {
			return server.LinkRequest{}, err
		}
		taken = true
	}
	if len(waiting) >= server.MaxLinkRequests && !taken {
		return server.LinkRequest{}, server.ErrTooManyLinkRequests
	}
	w := server.LinkRequest{ID: rand.Text(), SessionID: x.SessionID, Machine: x.Machine, Host: x.Host,
		Path: CleanText(n.Path), Link: n.Link, By: n.By, Created: Moment(Micros(n.At)), State: server.LinkRequestWaiting}
	_, err = l.Exec(ctx, `
INSERT INTO link_requests (owner, id, stream, path, link, asked_by, asked, state, reason, answered)
VALUES (?, ?, ?, ?, ?, ?, ?, 'waiting', '', 0)`,
		x.Owner, w.ID, x.Stream, w.Path, Flag(w.Link), w.By, Micros(n.At))
	return w, err
}

// answer records the result of a link request; it ignores requests of other streams.
func (d streamTx) answer(ctx context.Context, e *server.DocumentEvent) error {
	state := server.LinkRequestDone
	if e.Change == server.Refused {
		state = server.LinkRequestRefused
	}
	_, err := d.Exec(ctx, `
UPDATE link_requests SET state = ?, reason = ?, answered = ?
WHERE owner = ? AND id = ? AND stream = ? AND state = 'waiting'`,
		string(state), CleanText(e.Reason), d.now, d.owner, CleanText(e.LinkRequest), d.stream)
	return err
}

// LinkRequests implements server.Artifacts.
func (p *Artifacts) LinkRequests(ctx context.Context, scope server.Scope,
	ref server.Ref) ([]server.LinkRequest, error) {
	x, err := Resolve(ctx, p.db, scope, ref, (*Filter).artifacts)
	if err != nil {
		return nil, err
	}
	out, err := listLinkRequests(ctx, p.db, `
WHERE w.owner = ? AND w.stream = ? ORDER BY w.num DESC LIMIT ?`, x.Owner,
		x.Stream, server.MaxLinkRequests)
	return out, Wrap(err, "list link requests")
}

// PendingLinkRequests implements server.ArtifactIngester.
func (p *Artifacts) PendingLinkRequests(ctx context.Context, owner int64,
	machine string) ([]server.LinkRequest, error) {
	out, err := listLinkRequests(ctx, p.db, `
WHERE w.state = 'waiting' AND s.owner = ? AND s.machine = ? ORDER BY w.num LIMIT ?`,
		owner, machine, server.MaxLinkRequests)
	return out, Wrap(err, "list link requests")
}
