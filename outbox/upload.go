package outbox

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strconv"
)

const (
	blobChunk         = 1 << 20 // largest chunk of a blob in one request, in bytes
	minBlobChunk      = 4 << 10 // smallest chunk after a 413, in bytes
	maxSetbacks       = 8       // consecutive times that a server may lose chunks before the blob counts as refused
	maxHashMismatches = 5       // times that a server may report a wrong hash
)

// Content is a file that is read while it is sent.
type Content interface {
	io.ReaderAt
	io.Closer
	Size() int64 // bytes, when it was opened
}

// inRow is the content of a blob that the queue holds.
type inRow struct{ *bytes.Reader }

func (inRow) Close() error { return nil }

var errChanged = errors.New("the file has changed since it was queued")

// upload is the progress of a blob. Its lane keeps it between requests, one at a time. After every failure the server
// is asked again what it has. Owned by the owner of the lane's transfer.
type upload struct {
	seq            uint64
	started        bool
	offset         int64 // the server has the bytes before it
	furthest       int64 // highest offset so far
	chunk          int64 // bytes per request
	sum            hash.Hash
	hashed         int64 // bytes that sum covers, from the start, as they were sent
	setbacks       int
	hashMismatches int // times the server reported a wrong hash
}

// blobTransfer is the upload of a blob with its open content and the request that names it.
type blobTransfer struct {
	*upload
	s       *sender
	r       *request
	ref     *BlobRef
	content Content
}

// upload sends one chunk of a blob, and finishes the blob after the last. With the verdict partial, chunks remain.
func (s *sender) upload(ctx context.Context, r *request, u *upload) reply {
	content, err := s.content(&r.batches[0], r.stream.Cwd)
	if err != nil {
		var d *damageError
		if errors.As(err, &d) {
			return reply{verdict: damagedRow, damage: d, summary: d.Error()}
		}
		return reply{verdict: contentGone, summary: err.Error()}
	}
	defer content.Close()
	up := &blobTransfer{upload: u, s: s, r: r, ref: &r.batches[0].Blob, content: content}
	out := up.advance(ctx)
	if out.verdict != acknowledged && out.verdict != partial {
		u.started = false
	}
	return out
}

// content opens the content of a blob: from the batch, or the file that it names.
func (s *sender) content(b *Batch, cwd string) (Content, error) {
	if len(b.Frame) > 0 || b.Blob.Size == 0 {
		raw, err := s.codecs.Unpack(nil, b)
		if err == nil && int64(len(raw)) != b.Blob.Size {
			err = &damageError{Seq: b.Seq, Err: errLength}
		}
		return inRow{bytes.NewReader(raw)}, err
	}
	c, err := s.owner.OpenBlob(s.dest.Key, cwd, &b.Blob)
	if err != nil {
		return nil, fmt.Errorf("open a blob: %w", err)
	}
	if c.Size() != b.Blob.Size {
		c.Close()
		return nil, errChanged
	}
	return c, nil
}

func (u *blobTransfer) advance(ctx context.Context) reply {
	if !u.started {
		if out := u.begin(ctx); out.verdict != acknowledged || out.forgotten {
			return out
		}
	}
	if u.offset < u.ref.Size {
		if out := u.sendChunk(ctx); out.verdict != acknowledged || out.forgotten {
			return out
		}
	}
	if u.offset < u.ref.Size {
		return reply{verdict: partial}
	}
	return u.finish(ctx)
}

// begin announces the blob to the server and asks how much of it the server has.
func (u *blobTransfer) begin(ctx context.Context) reply {
	body, err := u.r.blobStart(u.s.origin)
	if err != nil {
		return u.r.noAnswer(err)
	}
	out, a := u.call(ctx, http.MethodPost, "start", "application/json", body)
	switch {
	case out.verdict != acknowledged || out.forgotten:
	case a.Complete:
		u.started, u.offset = true, u.ref.Size
	case a.Offset == nil:
		return notProtocol(out)
	default:
		u.started = true
		return u.moveTo(out, *a.Offset, u.furthest)
	}
	return out
}

// sendChunk sends one chunk.
func (u *blobTransfer) sendChunk(ctx context.Context) reply {
	body := make([]byte, min(u.chunk, u.ref.Size-u.offset))
	if n, err := u.content.ReadAt(body, u.offset); n < len(body) {
		return reply{verdict: contentGone, summary: "read a blob: " + errText(err)}
	}
	if err := u.hash(u.offset, body); err != nil {
		return reply{verdict: contentGone, summary: err.Error()}
	}
	out, a := u.call(ctx, http.MethodPut, "", "application/octet-stream", body)
	switch {
	case out.verdict == tooLarge && u.chunk > minBlobChunk:
		u.chunk = int64(len(body)) / 2
		return reply{verdict: partial}
	case out.verdict != acknowledged || out.forgotten:
		return out
	case a.Offset == nil:
		return notProtocol(out)
	}
	return u.moveTo(out, *a.Offset, u.offset+1)
}

// finish makes the server check the blob and store it.
func (u *blobTransfer) finish(ctx context.Context) reply {
	if err := u.hash(u.ref.Size, nil); err != nil {
		return reply{verdict: contentGone, summary: err.Error()}
	}
	if hex.EncodeToString(u.sum.Sum(nil)) != u.ref.SHA256 {
		return reply{verdict: contentGone, summary: errChanged.Error()}
	}
	body, err := u.r.blobBody(u.s.origin, struct {
		Name string `json:"name"`
	}{u.ref.Name})
	if err != nil {
		return u.r.noAnswer(err)
	}
	out, a := u.call(ctx, http.MethodPost, "end", "application/json", body)
	if out.verdict == acknowledged && a.Success == nil {
		return notProtocol(out)
	}
	return out
}

// hash adds a chunk at an offset to the sum, after the bytes before it that the server had already. Bytes that were
// sent are not read again: the sum covers what went out first.
func (u *blobTransfer) hash(at int64, chunk []byte) error {
	if u.hashed < at {
		n, err := io.Copy(u.sum, io.NewSectionReader(u.content, u.hashed, at-u.hashed))
		u.hashed += n
		if u.hashed < at {
			return fmt.Errorf("read a blob: %s", errText(err))
		}
	}
	if fresh := at + int64(len(chunk)) - u.hashed; fresh > 0 {
		u.sum.Write(chunk[int64(len(chunk))-fresh:])
		u.hashed += fresh
	}
	return nil
}

// errText explains a short read. Without an error the file has shrunk.
func errText(err error) string {
	if err == nil || errors.Is(err, io.EOF) {
		return errChanged.Error()
	}
	return err.Error()
}

// moveTo sets the offset to what the server has. An offset below least is a setback; a server may have one at times.
func (u *blobTransfer) moveTo(out reply, offset, least int64) reply {
	if offset < 0 || offset > u.ref.Size {
		u.started = false
		return u.setback(out, fmt.Sprintf("reports %d bytes of %d", offset, u.ref.Size))
	}
	u.offset = offset
	if offset < least {
		return u.setback(out, fmt.Sprintf("had %d bytes and now has %d", least, offset))
	}
	if offset > u.furthest {
		u.furthest, u.setbacks = offset, 0
	}
	return out
}

// setback counts a lost chunk. Too many in a row are a refusal.
func (u *blobTransfer) setback(out reply, what string) reply {
	if u.setbacks++; u.setbacks < maxSetbacks {
		return reply{verdict: partial}
	}
	out.verdict, out.kind, out.summary = rejected, KindRefused, out.summary+" and "+what
	return out
}

// blobAnswer is a server's answer about a blob.
type blobAnswer struct {
	Offset   *int64 `json:"offset"`
	Complete bool   `json:"complete"`
	Success  *bool  `json:"success"`
	Forgot   bool   `json:"forgotten"`
}

// call makes one request about the blob. It handles conflicts: the verdict is partial then, or rejected.
func (u *blobTransfer) call(ctx context.Context, method, step, media string, body []byte) (reply, blobAnswer) {
	address := u.s.address("blobs", u.ref.SHA256, step)
	if method == http.MethodPut {
		address = u.s.address("blobs", u.ref.SHA256) + "?offset=" + strconv.FormatInt(u.offset, 10)
	}
	out, text := u.s.do(ctx, u.r, &call{
		method: method, url: address, media: media, raw: int64(len(body)),
		body: payload{length: int64(len(body)), open: func() io.ReadCloser { return io.NopCloser(bytes.NewReader(body)) }},
	})
	var a blobAnswer
	err := json.Unmarshal(text, &a)
	switch {
	case out.status == http.StatusConflict && out.verdict != outOfStep:
		return u.conflict(out, a, step == "end"), a
	case out.verdict == unsupportedKind && step != "start": // it has lost the upload
		u.started = false
		return u.setback(out, "has lost the upload"), a
	case out.status < 200 || out.status >= 300:
		return out, a
	case err != nil && len(bytes.TrimSpace(text)) > 0:
		return notProtocol(out), a
	case a.Success != nil && !*a.Success:
		return out, a // classified already
	}
	out.verdict, out.kind, out.hint, out.summary = acknowledged, "", "", "answered "+statusText(out.status)
	out.forgotten = out.announced.extension && a.Forgot
	return out, a
}

// conflict handles a 409: the server has another offset, or at the end, another hash.
func (u *blobTransfer) conflict(out reply, a blobAnswer, end bool) reply {
	u.started = false // ask the server again
	if a.Offset != nil && *a.Offset >= 0 && *a.Offset <= u.ref.Size {
		u.started, u.offset = true, *a.Offset
	}
	if end {
		if u.hashMismatches++; u.hashMismatches < maxHashMismatches {
			return reply{verdict: partial}
		}
		out.verdict, out.kind = rejected, KindRefused
		return out
	}
	return u.setback(out, "conflicts with it")
}

// notProtocol handles a 2xx that is not this protocol's answer: a captive portal answers 200 too.
func notProtocol(out reply) reply {
	out.verdict, out.kind = retryLater, KindProtocol
	out.summary = "answered " + statusText(out.status) + " with something that is not this protocol"
	out.hint = "check server_url: another program may be answering there"
	return out
}

// blobStart builds the body of the request that begins an upload.
func (r *request) blobStart(o *Origin) ([]byte, error) {
	ref := &r.batches[0].Blob
	return r.blobBody(o, struct {
		Size  int64  `json:"size"`
		Media string `json:"media_type"`
		Name  string `json:"name"`
	}{ref.Size, ref.Media, ref.Name})
}

// blobBody builds a body with the common members, followed by those of rest.
func (r *request) blobBody(o *Origin, rest any) ([]byte, error) {
	b, err := r.names()
	if err != nil {
		return nil, err
	}
	b.WriteString(`,"ccship":`)
	if err := writeJSON(b, r.identityOf(o)); err != nil {
		return nil, err
	}
	at := b.Len()
	if err := writeJSON(b, rest); err != nil {
		return nil, err
	}
	b.Bytes()[at] = ',' // instead of the brace
	return b.Bytes(), nil
}
