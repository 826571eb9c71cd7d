package lines

import (
	"bytes"
	"context"
	"crypto/sha256"

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
