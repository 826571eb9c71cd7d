package store

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
type upload struct{ id, size, have, stored, tries int64 }

const selectUpload = `SELECT id, size, have, stored, tries FROM blobs WHERE owner = ? AND sha256 = ?`

// upload finds an upload. server.ErrNotFound when there is none.
func findUpload(ctx context.Context, l dialect, owner int64, sum []byte, lock string) (u upload, err error) {
	err = l.query(ctx, selectUpload+lock, []any{owner, sum}, func(row scanner) error {
		return row.Scan(&u.id, &u.size, &u.have, &u.stored, &u.tries)
	})
	if err == nil && u.id == 0 {
		err = fmt.Errorf("upload %x: %w", sum, server.ErrNotFound)
	}
	return u, err
}

// StartBlob implements server.ArtifactIngester.
func (p *artifacts) StartBlob(ctx context.Context, u *server.Upload) (have int64, complete bool, err error) {
	err = p.inStream(ctx, u.Owner, &u.Head, micros(u.At), "", func(d streamTx) error {
		if err := d.makeRoom(ctx, u); err != nil {
			return err
		}
		var x upload
		err := d.query(ctx, `
INSERT INTO blobs (owner, sha256, size, have, stored, touched, tries) VALUES (?, ?, ?, 0, 0, ?, 0)
ON CONFLICT (owner, sha256) DO UPDATE SET touched = excluded.touched RETURNING id, size, have, stored, tries`,
			[]any{u.Owner, u.SHA256[:], u.Size, d.now},
			func(row scanner) error { return row.Scan(&x.id, &x.size, &x.have, &x.stored, &x.tries) })
		if err != nil {
			return err
		}
		switch {
		case x.size == u.Size:
		case x.stored > 0:
			return server.ErrSize
		default:
			if err := restart(ctx, d, x.id, u.Size); err != nil {
				return err
			}
			x.have = 0
		}
		have, complete = x.have, x.stored > 0
		return d.refer(ctx, u)
	})
	if err != nil {
		return 0, false, fmt.Errorf("begin upload: %w", err)
	}
	return have, complete, nil
}

// makeRoom refuses an upload of a user with too many unfinished ones, unless it can remove an idle one.
func (d streamTx) makeRoom(ctx context.Context, u *server.Upload) error {
	const others = ` FROM blobs WHERE owner = ? AND stored = 0 AND sha256 <> ?`
	for {
		var n, bytes int64
		err := d.query(ctx, `SELECT count(*), CAST(coalesce(sum(have), 0) AS bigint)`+others, []any{u.Owner, u.SHA256[:]},
			func(row scanner) error { return row.Scan(&n, &bytes) })
		if err != nil || n < server.MaxUploads && bytes < server.MaxUploadBytes {
			return err
		}
		idle, err := one(ctx, d, `SELECT id`+others+` AND touched < ? ORDER BY touched LIMIT 1`,
			u.Owner, u.SHA256[:], d.now-restsFor.Microseconds())
		if err != nil {
			return err
		}
		if idle == 0 {
			return server.ErrTooManyUploads
		}
		if err := removeBlob(ctx, d, idle); err != nil {
			return err
		}
	}
}

// refer records that a file belongs to the session.
func (d streamTx) refer(ctx context.Context, u *server.Upload) error {
	_, err := d.exec(ctx, `
INSERT INTO blob_refs (stream, name_key, name, sha256, media, conversational, received) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (stream, name_key, sha256) DO NOTHING`, d.stream, key(u.Name), cleanText(u.Name), u.SHA256[:],
		cleanText(u.Media), flag(server.Conversational(u.Name)), d.now)
	return err
}

// restart drops the bytes that an upload has received.
func restart(ctx context.Context, l dialect, id, size int64) error {
	if _, err := l.exec(ctx, `DELETE FROM blob_chunks WHERE blob = ?`, id); err != nil {
		return err
	}
	_, err := l.exec(ctx, `UPDATE blobs SET have = 0, size = ?, tries = tries + 1 WHERE id = ?`, size, id)
	return err
}

// PutBlob implements server.ArtifactIngester.
func (p *artifacts) PutBlob(ctx context.Context, owner int64, sum [32]byte, offset int64, data []byte,
	at time.Time) (have int64, err error) {
	err = p.writer(ctx, func(l dialect) error {
		x, err := findUpload(ctx, l, owner, sum[:], l.lock())
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
			_, err := l.exec(ctx, `INSERT INTO blob_chunks (blob, place, data) VALUES (?, ?, ?)`, x.id, offset, data)
			if err != nil {
				return err
			}
		}
		_, err = l.exec(ctx, `UPDATE blobs SET have = ?, touched = ? WHERE id = ?`, have, micros(at), x.id)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("store chunk: %w", err)
	}
	return have, nil
}

// EndBlob implements server.ArtifactIngester. The bytes are read and hashed while others write.
func (p *artifacts) EndBlob(ctx context.Context, u *server.Upload) error {
	err := p.endBlob(ctx, u)
	if err != nil {
		return fmt.Errorf("end upload: %w", err)
	}
	return nil
}

func (p *artifacts) endBlob(ctx context.Context, u *server.Upload) error {
	x, err := findUpload(ctx, p.reader, u.Owner, u.SHA256[:], "")
	if err != nil {
		return err
	}
	right := x.stored > 0
	if !right {
		if x.have < x.size {
			return &server.OffsetError{Have: x.have}
		}
		sum, err := hashOf(&blobReader{ctx: ctx, l: p.reader, blob: x.id, size: x.size})
		if err != nil {
			return err
		}
		right = bytes.Equal(sum, u.SHA256[:])
	}
	var wrong error
	err = p.inStream(ctx, u.Owner, &u.Head, micros(u.At), "", func(d streamTx) error {
		wrong = nil
		now, err := findUpload(ctx, d, u.Owner, u.SHA256[:], d.lock())
		switch {
		case err != nil:
			return err
		case now.stored > 0:
			return d.refer(ctx, u)
		case now.id != x.id || now.tries != x.tries || now.have != x.have:
			return &server.OffsetError{Have: now.have} // the upload began again while we read
		case !right:
			wrong = &server.OffsetError{Wrong: true}
			return restart(ctx, d, x.id, x.size)
		}
		if _, err := d.exec(ctx, `UPDATE blobs SET stored = ?, touched = ? WHERE id = ?`, d.now, d.now, x.id); err != nil {
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
func (p *artifacts) SweepBlobs(ctx context.Context, before time.Time) (removed int64, err error) {
	for {
		var id int64
		err := p.writer(ctx, func(l dialect) (err error) {
			id, err = one(ctx, l, `SELECT id FROM blobs WHERE stored = 0 AND touched < ? ORDER BY id LIMIT 1`+l.lock(),
				micros(before))
			if err != nil || id == 0 {
				return err
			}
			return removeBlob(ctx, l, id)
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
func removeBlob(ctx context.Context, l dialect, id int64) error {
	_, err := l.exec(ctx, `DELETE FROM blob_refs WHERE sha256 = (SELECT sha256 FROM blobs WHERE id = ?) AND stream IN (
  SELECT s.id FROM streams s JOIN blobs b ON b.owner = s.owner WHERE b.id = ?)`, id, id)
	if err != nil {
		return err
	}
	if _, err := l.exec(ctx, `DELETE FROM blob_chunks WHERE blob = ?`, id); err != nil {
		return err
	}
	_, err = l.exec(ctx, `DELETE FROM blobs WHERE id = ?`, id)
	return err
}

const selectBlob = `
SELECT b.sha256, r.name, r.media, b.size, b.stored, s.id, s.session_id, s.machine, s.owner
FROM blob_refs r JOIN streams s ON s.id = r.stream JOIN blobs b ON b.owner = s.owner AND b.sha256 = r.sha256 `

func scanBlob(row scanner) (b server.Blob, owner int64, err error) {
	var sum []byte
	var stored int64
	err = row.Scan(&sum, &b.Name, &b.Media, &b.Size, &stored, &b.Stream, &b.SessionID, &b.Machine, &owner)
	b.SHA256, b.Stored = hex.EncodeToString(sum), moment(stored)
	return b, owner, err
}

// files selects the files r of streams s that a scope sees: a conversation's files as such, documents' as documents. A
// file that is both counts as a document's.
func (f *filter) files(scope server.Scope) {
	f.add(`b.stored > 0`)
	f.scope(scope)
	if scope.All {
		return
	}
	var docs filter
	docs.artifacts(scope)
	f.add(`(r.conversational = 1 AND NOT EXISTS (SELECT 1 FROM document_versions v JOIN documents d ON d.id = v.document
    WHERE v.sha256 = r.sha256 AND d.stream = r.stream) OR `+docs.conditions[0]+`)`, docs.args...)
}

// Blobs implements server.Artifacts.
func (p *artifacts) Blobs(ctx context.Context, scope server.Scope, ref server.Ref) ([]server.Blob, error) {
	x, err := resolve(ctx, p.reader, scope, ref, (*filter).scope)
	if err != nil {
		return nil, err
	}
	var f filter
	f.add(`s.id = ?`, x.Stream)
	f.files(scope)
	out := []server.Blob{}
	err = p.reader.query(ctx, selectBlob+f.where()+` ORDER BY r.name, r.received, b.id`, f.args, func(row scanner) error {
		b, _, err := scanBlob(row)
		out = append(out, b)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	return out, nil
}

// BlobContent implements server.Artifacts.
func (p *artifacts) BlobContent(ctx context.Context, scope server.Scope,
	sum string) (b server.Blob, content io.Reader, err error) {
	raw, err := hex.DecodeString(sum)
	if err != nil || len(raw) != sha256.Size {
		return b, nil, fmt.Errorf("file %.64q: %w", sum, server.ErrNotFound)
	}
	var f filter
	f.add(`r.sha256 = ?`, raw)
	f.files(scope)
	owner := int64(-1)
	err = p.reader.query(ctx, selectBlob+f.where()+`
ORDER BY CASE s.owner WHEN ? THEN 0 ELSE 1 END, r.received DESC, s.id LIMIT 1`,
		append(f.args, scope.User), func(row scanner) (err error) {
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
func (p *artifacts) open(ctx context.Context, owner int64, sum string) (size int64, content io.Reader, err error) {
	raw, err := hex.DecodeString(sum)
	if err != nil {
		return 0, nil, err
	}
	x, err := findUpload(ctx, p.reader, owner, raw, "")
	if err == nil && x.stored == 0 {
		err = server.ErrNoContent
	}
	if err != nil {
		return 0, nil, fmt.Errorf("open file: %w", err)
	}
	return x.size, &blobReader{ctx: ctx, l: p.reader, blob: x.id, size: x.size}, nil
}

// blobReader reads a file a chunk at a time, so that a slow reader holds no connection. Stored bytes do not change; if
// they are gone because the file was forgotten, that is an error.
type blobReader struct {
	ctx      context.Context // of the reader, valid while it reads
	l        dialect
	blob     int64
	at, size int64
	rest     []byte
}

// Read implements io.Reader.
func (r *blobReader) Read(b []byte) (int, error) {
	if len(r.rest) == 0 && r.at < r.size {
		err := r.l.query(r.ctx, `SELECT data FROM blob_chunks WHERE blob = ? AND place = ?`, []any{r.blob, r.at},
			func(row scanner) error { return row.Scan(&r.rest) })
		if err != nil {
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
