package sqlstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/ccship/ccship/server"
)

// restsFor is how long an upload must have been idle before another one of its user may replace it.
const restsFor = 10 * time.Minute

// upload is a file of one owner, complete or not.
type upload struct{ owner, id, size, have, stored, tries int64 }

const selectUpload = `SELECT id, size, have, stored, tries FROM blobs WHERE owner = ? AND sha256 = ?`

// findUpload finds an upload. server.ErrNotFound when there is none.
func findUpload(ctx context.Context, l Dialect, owner int64, sum []byte) (u upload, err error) {
	u.owner = owner
	err = l.Query(ctx, selectUpload, []any{owner, sum}, func(row Scanner) error {
		return row.Scan(&u.id, &u.size, &u.have, &u.stored, &u.tries)
	})
	if err == nil && u.id == 0 {
		err = fmt.Errorf("upload %x: %w", sum, server.ErrNotFound)
	}
	return u, err
}

// StartBlob implements server.ArtifactIngester.
func (p *Artifacts) StartBlob(ctx context.Context, u *server.Upload) (have int64, complete bool, err error) {
	w := Write{Owner: u.Owner, Quota: u.Quota, Head: &u.Head, Bytes: u.Size + server.RowBytes}
	if begun, err := findUpload(ctx, p.db, u.Owner, u.SHA256[:]); err == nil && begun.size == u.Size {
		w.Bytes = 0 // it counts already
	}
	err = p.inStream(ctx, w, Micros(u.At), "", func(d streamTx) error {
		if err := d.makeRoom(ctx, u); err != nil {
			return err
		}
		x := upload{owner: u.Owner}
		err := d.Query(ctx, `
INSERT INTO blobs (owner, sha256, size, have, stored, touched, tries) VALUES (?, ?, ?, 0, 0, ?, 0)
ON CONFLICT (owner, sha256) DO UPDATE SET touched = excluded.touched RETURNING id, size, have, stored, tries`,
			[]any{u.Owner, u.SHA256[:], u.Size, d.now},
			func(row Scanner) error { return row.Scan(&x.id, &x.size, &x.have, &x.stored, &x.tries) })
		if err != nil {
			return err
		}
		switch {
		case x.size == u.Size:
		case x.stored > 0:
			return server.ErrSize
		default:
			if err := restart(ctx, d, x, u.Size); err != nil {
				return err
			}
			x.have = 0
		}
		if x.stored > 0 {
			if err := d.revive(ctx, &x); err != nil {
				return err
			}
		}
		have, complete = x.have, x.stored > 0
		return d.refer(ctx, u)
	})
	return have, complete, Wrap(err, "begin upload")
}

// makeRoom refuses an upload of a user with too many unfinished ones, unless it can remove an idle one.
func (d streamTx) makeRoom(ctx context.Context, u *server.Upload) error {
	const others = ` FROM blobs WHERE owner = ? AND stored = 0 AND sha256 <> ?`
	for {
		var n, bytes int64
		err := d.Query(ctx, `SELECT count(*), CAST(coalesce(sum(have), 0) AS bigint)`+others, []any{u.Owner, u.SHA256[:]},
			func(row Scanner) error { return row.Scan(&n, &bytes) })
		if err != nil || n < server.MaxUploads && bytes < server.MaxUploadBytes {
			return err
		}
		idle, err := Number(ctx, d, `SELECT id`+others+` AND touched < ? ORDER BY touched LIMIT 1`,
			u.Owner, u.SHA256[:], d.now-restsFor.Microseconds())
		if err != nil {
			return err
		}
		if idle == 0 {
			return server.ErrTooManyUploads
		}
		if err := removeBlob(ctx, d, u.Owner, idle); err != nil {
			return err
		}
	}
}

// refer records that a file belongs to the session.
func (d streamTx) refer(ctx context.Context, u *server.Upload) error {
	_, err := d.Exec(ctx, `
INSERT INTO blob_refs (owner, stream, name_key, name, sha256, media, conversational, received)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (owner, stream, name_key, sha256) DO NOTHING`, d.owner, d.stream, Key(u.Name), CleanText(u.Name),
		u.SHA256[:], CleanText(u.Media), Flag(server.Conversational(u.Name)), d.now)
	return err
}

// restart drops the bytes that an upload has received.
func restart(ctx context.Context, l Dialect, x upload, size int64) error {
	if _, err := l.Exec(ctx, `DELETE FROM blob_chunks WHERE owner = ? AND blob = ?`, x.owner, x.id); err != nil {
		return err
	}
	_, err := l.Exec(ctx, `UPDATE blobs SET have = 0, size = ?, tries = tries + 1 WHERE owner = ? AND id = ?`,
		size, x.owner, x.id)
	return err
}

// PutBlob implements server.ArtifactIngester.
func (p *Artifacts) PutBlob(ctx context.Context, owner int64, sum [32]byte, offset int64, data []byte,
	at time.Time) (have int64, err error) {
	err = p.db.Write(ctx, func(l Dialect) error {
		x, err := findUpload(ctx, Locked{l}, owner, sum[:])
		switch {
		case err != nil:
			return err
		case x.stored > 0 || offset != x.have:
			return &server.OffsetError{Have: x.have}
		case offset+int64(len(data)) > x.size:
			return server.ErrSize
		}
		have = offset + int64(len(data))
		if len(data) > 0 {
			_, err := l.Exec(ctx, `INSERT INTO blob_chunks (owner, blob, place, data) VALUES (?, ?, ?, ?)`,
				owner, x.id, offset, data)
			if err != nil {
				return err
			}
		}
		_, err = l.Exec(ctx, `UPDATE blobs SET have = ?, touched = ? WHERE owner = ? AND id = ?`,
			have, Micros(at), owner, x.id)
		return err
	})
	return have, Wrap(err, "store chunk")
}

// EndBlob implements server.ArtifactIngester. The bytes are read and hashed while others write.
func (p *Artifacts) EndBlob(ctx context.Context, u *server.Upload) error {
	err := p.endBlob(ctx, u)
	return Wrap(err, "end upload")
}

func (p *Artifacts) endBlob(ctx context.Context, u *server.Upload) error {
	x, err := findUpload(ctx, p.db, u.Owner, u.SHA256[:])
	if err != nil {
		return err
	}
	right := x.stored > 0
	if !right {
		if x.have < x.size {
			return &server.OffsetError{Have: x.have}
		}
		sum, err := hashOf(p.content(ctx, x))
		if err != nil {
			return err
		}
		right = bytes.Equal(sum, u.SHA256[:])
	}
	var wrong error
	w := Write{Owner: u.Owner, Quota: u.Quota, Head: &u.Head}
	err = p.inStream(ctx, w, Micros(u.At), "", func(d streamTx) error {
		wrong = nil
		now, err := findUpload(ctx, Locked{d}, u.Owner, u.SHA256[:])
		switch {
		case err != nil:
			return err
		case now.stored > 0:
			return d.refer(ctx, u)
		case now.id != x.id || now.tries != x.tries || now.have != x.have:
			return &server.OffsetError{Have: now.have} // the upload began again while we read
		case !right:
			wrong = &server.OffsetError{Wrong: true}
			return restart(ctx, d, x, x.size)
		}
		_, err = d.Exec(ctx, `UPDATE blobs SET stored = ?, touched = ? WHERE owner = ? AND id = ?`,
			d.now, d.now, u.Owner, x.id)
		if err != nil {
			return err
		}
		return d.refer(ctx, u)
	})
	if err != nil {
		return err
	}
	return wrong
}

func hashOf(from io.Reader) ([]byte, error) {
	h := sha256.New()
	if _, err := io.Copy(h, from); err != nil {
		return nil, fmt.Errorf("read it back: %w", err)
	}
	return h.Sum(nil), nil
}

// SweepBlobs implements server.ArtifactIngester.
func (p *Artifacts) SweepBlobs(ctx context.Context, before time.Time) (removed int64, err error) {
	for {
		var id, owner int64
		err := p.db.Write(ctx, func(l Dialect) (err error) {
			id = 0
			err = l.Lock(ctx, `SELECT id, owner FROM blobs WHERE stored = 0 AND touched < ? ORDER BY id LIMIT 1`,
				[]any{Micros(before)}, func(row Scanner) error { return row.Scan(&id, &owner) })
			if err != nil || id == 0 {
				return err
			}
			return removeBlob(ctx, l, owner, id)
		})
		if err != nil {
			return removed, fmt.Errorf("remove abandoned uploads: %w", err)
		}
		if id == 0 {
			return removed, nil
		}
		removed++
	}
}

// removeBlob removes an incomplete file, and the references that sessions have to it.
func removeBlob(ctx context.Context, l Dialect, owner, id int64) error {
	_, err := l.Exec(ctx, `DELETE FROM blob_refs WHERE sha256 = (SELECT sha256 FROM blobs WHERE owner = ? AND id = ?)
  AND (owner, stream) IN (SELECT s.owner, s.id FROM streams s WHERE s.owner = ?)`, owner, id, owner)
	if err != nil {
		return err
	}
	if _, err := l.Exec(ctx, `DELETE FROM blob_chunks WHERE owner = ? AND blob = ?`, owner, id); err != nil {
		return err
	}
	_, err = l.Exec(ctx, `DELETE FROM blobs WHERE owner = ? AND id = ?`, owner, id)
	return err
}

const selectBlob = `
SELECT b.sha256, r.name, r.media, b.size, b.stored, s.id, s.session_id, s.machine, s.owner
FROM blob_refs r JOIN streams s ON s.owner = r.owner AND s.id = r.stream
JOIN blobs b ON b.owner = s.owner AND b.sha256 = r.sha256 `

func scanBlob(row Scanner) (b server.Blob, owner int64, err error) {
	var sum []byte
	var stored int64
	err = row.Scan(&sum, &b.Name, &b.Media, &b.Size, &stored, &b.Stream, &b.SessionID, &b.Machine, &owner)
	b.SHA256, b.Stored = hex.EncodeToString(sum), Moment(stored)
	return b, owner, err
}

// files selects the files r of streams s that a scope sees: a conversation's files as such, documents' as documents. A
// file that is both counts as a document's.
func (f *Filter) files(scope server.Scope) {
	f.Add(`b.stored > 0`)
	f.Scope(scope)
	if scope.All {
		return
	}
	var docs Filter
	docs.artifacts(scope)
	f.Add(`(r.conversational = 1 AND NOT EXISTS (SELECT 1 FROM document_versions v
    JOIN documents d ON d.owner = v.owner AND d.id = v.document
    WHERE v.owner = r.owner AND v.sha256 = r.sha256 AND d.stream = r.stream)
    OR `+docs.Conditions[0]+`)`, docs.Args...)
}

// Blobs implements server.Artifacts.
func (p *Artifacts) Blobs(ctx context.Context, scope server.Scope, ref server.Ref) ([]server.Blob, error) {
	x, err := Resolve(ctx, p.db, scope, ref, (*Filter).Scope)
	if err != nil {
		return nil, err
	}
	var f Filter
	f.Add(`s.id = ?`, x.Stream)
	f.files(scope)
	out := []server.Blob{}
	err = p.db.Query(ctx, selectBlob+f.Where()+` ORDER BY r.name, r.received, b.id`, f.Args, func(row Scanner) error {
		b, _, err := scanBlob(row)
		out = append(out, b)
		return err
	})
	return out, Wrap(err, "list files")
}

// BlobContent implements server.Artifacts.
func (p *Artifacts) BlobContent(ctx context.Context, scope server.Scope,
	sum string) (b server.Blob, content io.Reader, err error) {
	raw, err := hex.DecodeString(sum)
	if err != nil || len(raw) != sha256.Size {
		return b, nil, fmt.Errorf("file %.64q: %w", sum, server.ErrNotFound)
	}
	var f Filter
	f.Add(`r.sha256 = ?`, raw)
	f.files(scope)
	owner := int64(-1)
	err = p.db.Query(ctx, selectBlob+f.Where()+`
ORDER BY CASE s.owner WHEN ? THEN 0 ELSE 1 END, r.received DESC, s.id LIMIT 1`,
		append(f.Args, scope.User), func(row Scanner) (err error) {
			b, owner, err = scanBlob(row)
			return err
		})
	if err != nil {
		return b, nil, fmt.Errorf("look up file: %w", err)
	}
	if owner < 0 {
		return b, nil, fmt.Errorf("file %s: %w", sum, server.ErrNotFound)
	}
	_, content, err = p.open(ctx, owner, b.SHA256)
	return b, content, err
}

// open returns the bytes of a complete file.
func (p *Artifacts) open(ctx context.Context, owner int64, sum string) (size int64, content io.Reader, err error) {
	raw, err := hex.DecodeString(sum)
	if err != nil {
		return 0, nil, err
	}
	x, err := findUpload(ctx, p.db, owner, raw)
	if err == nil && x.stored == 0 {
		err = server.ErrNoContent
	}
	if err == nil {
		err = p.unlessRetired(ctx, x)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("open file: %w", err)
	}
	return x.size, p.content(ctx, x), nil
}

// content reads the bytes of an upload.
func (p *Artifacts) content(ctx context.Context, x upload) io.Reader {
	return &blobReader{ctx: ctx, cold: p.cold, upload: x}
}

// blobReader reads a file a chunk at a time, so that a slow reader holds no connection. Stored bytes do not change; if
// they are gone because the file was forgotten, that is an error.
type blobReader struct {
	ctx  context.Context // of the reader, valid while it reads
	cold ColdFiles
	upload
	at   int64
	rest []byte
}

// Read implements io.Reader.
func (r *blobReader) Read(b []byte) (int, error) {
	if len(r.rest) == 0 && r.at < r.size {
		var err error
		if r.rest, err = r.cold.Chunk(r.ctx, r.owner, r.id, r.at); err != nil {
			return 0, fmt.Errorf("read file: %w", err)
		}
		if len(r.rest) == 0 || int64(len(r.rest)) > r.size-r.at {
			return 0, fmt.Errorf("read file at %d: %w", r.at, io.ErrUnexpectedEOF)
		}
		r.at += int64(len(r.rest))
	}
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
