package outbox

import (
	"bytes"
	"context"
	"crypto/sha256"
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
	blobChunk    = 1 << 20 // bytes of a blob that one request carries at most
	blobLeast    = 4 << 10 // bytes of a chunk that is not made smaller after a 413
	mostSetbacks = 8       // times in a row that a server may fall back behind what it had, before it refuses the blob
	mostEnds     = 5       // times that a server may find a blob's hash wrong
)

// Content is a file that is read while it is sent. The reader owns it until Close.
type Content interface {
	io.ReaderAt
	io.Closer
	Size() int64 // bytes, as it was when it was opened
}

// inRow is the content of a small blob.
type inRow struct{ *bytes.Reader }

func (inRow) Close() error { return nil }

var (
	errNoOpener = errors.New("nothing opens files here")
	errChanged  = errors.New("it has changed since it was queued")
)

// upload is how far a blob has come. Its lane keeps it between requests and has no more than one; what the server has
// is asked for anew after every failure. Owned by whoever owns the lane's work.
type upload struct {
	seq      uint64
	started  bool
	offset   int64 // the server has what lies before
	furthest int64 // the highest offset there was
	chunk    int64 // bytes a request
	sum      hash.Hash
	hashed   int64 // bytes that sum is of: the first, as they were read here
	setbacks int
	ends     int // times the server found the hash wrong
}

func newUpload(seq uint64) *upload { return &upload{seq: seq, chunk: blobChunk, sum: sha256.New()} }

// uploading is a request that brings a blob on: its row, its content, and what the server says of it.
type uploading struct {
	*upload
	s       *sender
	r       *request
	ref     *BlobRef
	content Content
}

// upload brings a blob on by one chunk, and to its end when that was the last. The verdict more says that there is more
// to do. It never returns an error.
func (s *sender) upload(ctx context.Context, r *request, u *upload) reply {
	content, err := s.content(&r.batches[0])
	if err != nil {
		var d *damage
		if errors.As(err, &d) {
			return reply{verdict: broken, damage: d, summary: d.Error()}
		}
		return reply{verdict: gone, summary: err.Error()}
	}
	defer content.Close()
	up := &uploading{upload: u, s: s, r: r, ref: &r.batches[0].Blob, content: content}
	out := up.advance(ctx)
	if out.verdict != taken && out.verdict != more {
		u.started = false
	}
	return out
}

// content opens what a blob's row holds or names.
func (s *sender) content(b *Batch) (Content, error) {
	if len(b.Frame) > 0 || b.Blob.Size == 0 {
		raw, err := s.codecs.unpack(nil, b)
		if err == nil && int64(len(raw)) != b.Blob.Size {
			err = &damage{seq: b.Seq, err: errRowLength}
		}
		return inRow{bytes.NewReader(raw)}, err
	}
	if s.open == nil {
		return nil, errNoOpener
	}
	c, err := s.open(b.Blob.Root, b.Blob.Path)
	if err != nil {
		return nil, fmt.Errorf("open a blob: %w", err)
	}
	if c.Size() != b.Blob.Size {
		c.Close()
		return nil, errChanged
	}
	return c, nil
}

func (u *uploading) advance(ctx context.Context) reply {
	if !u.started {
		if out := u.start(ctx); out.verdict != taken || out.forgotten {
			return out
		}
	}
	if u.offset < u.ref.Size {
		if out := u.put(ctx); out.verdict != taken || out.forgotten {
			return out
		}
	}
	if u.offset < u.ref.Size {
		return reply{verdict: more}
	}
	return u.end(ctx)
}

// start tells the server of the blob and asks how much of it it has.
func (u *uploading) start(ctx context.Context) reply {
	body, err := u.r.blobStart(u.s.origin)
	if err != nil {
		return u.r.unsent(err)
	}
	out, a := u.call(ctx, http.MethodPost, "start", "application/json", body)
	switch {
	case out.verdict != taken || out.forgotten:
	case a.Complete:
		u.started, u.offset = true, u.ref.Size
	case a.Offset == nil:
		return foreign(out)
	default:
		u.started = true
		return u.moveTo(out, *a.Offset, u.furthest)
	}
	return out
}

// put sends one chunk.
func (u *uploading) put(ctx context.Context) reply {
	body := make([]byte, min(u.chunk, u.ref.Size-u.offset))
	if n, err := u.content.ReadAt(body, u.offset); n < len(body) {
		return reply{verdict: gone, summary: "read a blob: " + errText(err)}
	}
	if err := u.hash(u.offset, body); err != nil {
		return reply{verdict: gone, summary: err.Error()}
	}
	out, a := u.call(ctx, http.MethodPut, "", "application/octet-stream", body)
	switch {
	case out.verdict == tooLarge && u.chunk > blobLeast:
		u.chunk = int64(len(body)) / 2
		return reply{verdict: more}
	case out.verdict != taken || out.forgotten:
		return out
	case a.Offset == nil:
		return foreign(out)
	}
	return u.moveTo(out, *a.Offset, u.offset+1)
}

// end has the server check the blob and keep it.
func (u *uploading) end(ctx context.Context) reply {
	if err := u.hash(u.ref.Size, nil); err != nil {
		return reply{verdict: gone, summary: err.Error()}
	}
	if hex.EncodeToString(u.sum.Sum(nil)) != u.ref.SHA256 {
		return reply{verdict: gone, summary: errChanged.Error()}
	}
	body, err := u.r.blobEnd(u.s.origin)
	if err != nil {
		return u.r.unsent(err)
	}
	out, _ := u.call(ctx, http.MethodPost, "end", "application/json", body)
	return out
}

// hash takes a chunk read at an offset into the sum, and what lies between that the server had already. What was sent
// before is not read again: the sum is of the bytes that went out first.
func (u *uploading) hash(at int64, chunk []byte) error {
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

// errText is what kept a read from being whole; without an error the file has become shorter.
func errText(err error) string {
	if err == nil || errors.Is(err, io.EOF) {
		return errChanged.Error()
	}
	return err.Error()
}

// moveTo takes in how far the server says it is. Below least it has fallen back, which it may do now and then.
func (u *uploading) moveTo(out reply, offset, least int64) reply {
	if offset < 0 || offset > u.ref.Size {
		u.started = false
		return u.setback(out, fmt.Sprintf("says that it has %d bytes of %d", offset, u.ref.Size))
	}
	u.offset = offset
	if offset < least {
		return u.setback(out, fmt.Sprintf("had %d bytes and has %d now", least, offset))
	}
	if offset > u.furthest {
		u.furthest, u.setbacks = offset, 0
	}
	return out
}

// setback counts that the server did not go on. Too many are a refusal.
func (u *uploading) setback(out reply, what string) reply {
	if u.setbacks++; u.setbacks < mostSetbacks {
		return reply{verdict: more}
	}
	out.verdict, out.kind, out.summary = rejected, KindRefused, out.summary+" and "+what
	return out
}

// blobAnswer is what a server says of a blob.
type blobAnswer struct {
	Offset   *int64 `json:"offset"`
	Complete bool   `json:"complete"`
	Success  *bool  `json:"success"`
	Forgot   bool   `json:"forgotten"`
}

// call makes one request about the blob. A conflict is taken in here: the verdict is more then, or rejected.
func (u *uploading) call(ctx context.Context, method, step, media string, body []byte) (reply, blobAnswer) {
	address := u.s.address("blobs", u.ref.SHA256, step)
	if method == http.MethodPut {
		address = u.s.address("blobs", u.ref.SHA256) + "?offset=" + strconv.FormatInt(u.offset, 10)
	}
	out, text := u.s.ask(ctx, u.r, &call{
		method: method, url: address, media: media, raw: int64(len(body)),
		body: payload{length: int64(len(body)), open: func() io.ReadCloser { return io.NopCloser(bytes.NewReader(body)) }},
	})
	var a blobAnswer
	err := json.Unmarshal(text, &a)
	switch {
	case out.status == http.StatusConflict:
		return u.conflict(out, a, step == "end"), a
	case out.verdict == unwanted && step != "start": // it has lost the upload
		u.started = false
		return u.setback(out, "does not know the upload any more"), a
	case out.status < 200 || out.status >= 300:
		return out, a
	case err != nil && len(bytes.TrimSpace(text)) > 0:
		return foreign(out), a
	case a.Success != nil && !*a.Success:
		return out, a // understood already
	}
	out.verdict, out.kind, out.hint, out.summary = taken, "", "", "answered "+statusText(out.status)
	out.forgotten = out.announced.extension && a.Forgot
	return out, a
}

// conflict takes in that the server is elsewhere than this end believes, or at the end, that the hash is wrong.
func (u *uploading) conflict(out reply, a blobAnswer, end bool) reply {
	u.started = false // ask
	if a.Offset != nil && *a.Offset >= 0 && *a.Offset <= u.ref.Size {
		u.started, u.offset = true, *a.Offset
	}
	if end {
		if u.ends++; u.ends < mostEnds {
			return reply{verdict: more}
		}
		out.verdict, out.kind = rejected, KindRefused
		return out
	}
	return u.setback(out, "conflicts with it")
}

// foreign is a success that is not this protocol's: a captive portal answers 200 as well.
func foreign(out reply) reply {
	out.verdict, out.kind = again, KindProtocol
	out.summary = "answered " + statusText(out.status) + " with something that is not this protocol's"
	out.hint = "check server_url: another program may answer there"
	return out
}

// blobStart is the body of the request that begins an upload.
func (r *request) blobStart(o *Origin) ([]byte, error) {
	ref := &r.batches[0].Blob
	return r.blobBody(o, struct {
		Size  int64  `json:"size"`
		Media string `json:"media_type"`
		Name  string `json:"name"`
	}{ref.Size, ref.Media, ref.Name})
}

// blobEnd is the body of the request that ends an upload.
func (r *request) blobEnd(o *Origin) ([]byte, error) {
	return r.blobBody(o, struct {
		Name string `json:"name"`
	}{r.batches[0].Blob.Name})
}

// blobBody is a body with the members of rest behind those that every body has.
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
	b.Bytes()[at] = ',' // in place of the brace
	return b.Bytes(), nil
}
