package outbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/ccship/ccship/protocol"
)

// identityOf returns the common members of every extension object.
func (r *request) identityOf(o *Origin) protocol.StreamIdentity {
	x := protocol.StreamIdentity{
		Version: protocol.Version, Machine: o.Machine, Host: o.Host, Epoch: o.EpochOf(r.stream),
		Path: r.stream.Path, Cwd: r.stream.Cwd, Project: r.stream.Project, Repository: r.stream.Repository,
	}
	if r.stream.Parent != "" {
		x.Parent = &r.stream.Parent
	}
	return x
}

// request is one POST: batches of one stream, one generation and joinable kinds, in order.
type request struct {
	stream  *Stream
	batches []Batch
	bare    bool // without the extension
	speaks  bool // the server announced the extension before
	zstd    bool // compressed

	wire    int64                       // bytes of the body as it was sent; 0: it was not
	damaged atomic.Pointer[damageError] // set while the body is read
}

func (r *request) entries() (n int) {
	for i := range r.batches {
		n += r.batches[i].Entries
	}
	return n
}

func (r *request) raw() (n int64) {
	for i := range r.batches {
		n += r.batches[i].Raw
	}
	return n
}

// itemSize returns how large the artifacts of a request are, in bytes. A blob counts as a whole, whatever was sent of
// it.
func (r *request) itemSize() int64 {
	if r.kind() == Blob {
		return r.batches[0].Blob.Size
	}
	return r.raw()
}

// kind returns the kind of the request's batches. A request has at least one.
func (r *request) kind() Kind { return r.batches[0].Kind }

// head builds the body up to the first entry or item.
func (r *request) head(o *Origin) ([]byte, error) {
	b, err := r.names()
	if err != nil {
		return nil, err
	}
	if !r.kind().artifact() {
		b.WriteString(`,"entries":[`)
		return b.Bytes(), nil
	}
	b.WriteString(`,"ccship":`)
	if err := writeJSON(b, r.identityOf(o)); err != nil {
		return nil, err
	}
	if r.kind() == Checkpoints {
		b.WriteString(`,"checkpoints":[`)
	} else {
		b.WriteString(`,"events":[`)
	}
	return b.Bytes(), nil
}

// names begins a body with project and session.
func (r *request) names() (*bytes.Buffer, error) {
	var b bytes.Buffer
	b.WriteString(`{"project_hash":`)
	if err := writeJSON(&b, r.stream.ProjectHash); err != nil {
		return nil, err
	}
	b.WriteString(`,"session_id":`)
	if err := writeJSON(&b, r.stream.SessionID); err != nil {
		return nil, err
	}
	return &b, nil
}

// tail builds the body after the last entry or item.
func (r *request) tail(o *Origin) ([]byte, error) {
	if r.bare || r.kind().artifact() {
		return []byte("]}"), nil
	}
	first, last := &r.batches[0], &r.batches[len(r.batches)-1]
	newline := !last.NoNewline
	x := protocol.Extension{
		StreamIdentity: r.identityOf(o),
		Generation:     int64(first.Generation), RewoundTo: first.RewoundTo,
		From: first.From, To: last.To, EOFNewline: &newline,
	}
	for i := range r.batches {
		x.Edges = append(x.Edges, r.batches[i].Edges...)
	}
	var b bytes.Buffer
	b.WriteString(`],"ccship":`)
	if err := writeJSON(&b, x); err != nil {
		return nil, err
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func writeJSON(b *bytes.Buffer, v any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	b.Truncate(b.Len() - 1) // the encoder's newline
	return nil
}

// payload is a body that can be read again, for redirects and broken connections.
type payload struct {
	length int64
	open   func() io.ReadCloser
}

// payload builds the body. It holds the frames of the batches; nothing else grows with the entries.
func (r *request) payload(o *Origin, c *codecs) (payload, error) {
	head, err := r.head(o)
	if err != nil {
		return payload{}, err
	}
	tail, err := r.tail(o)
	if err != nil {
		return payload{}, err
	}
	if r.zstd {
		return newPayload(r, c, r.frames(c, head, tail)), nil
	}
	return newPayload(r, c, r.parts(head, tail)), nil
}

// frames returns the body as zstd frames: those of the batches, joined by small ones. Nothing is compressed again.
func (r *request) frames(c *codecs, head, tail []byte) []framePart {
	parts := []framePart{{Literal: c.Pack(nil, head)}}
	var comma []byte
	for i := range r.batches {
		b := &r.batches[i]
		if b.Entries+b.Items == 0 {
			continue
		}
		if comma == nil {
			comma = c.Pack(nil, []byte{','})
		} else {
			parts = append(parts, framePart{Literal: comma})
		}
		parts = append(parts, framePart{Literal: b.Frame})
	}
	return append(parts, framePart{Literal: c.Pack(nil, tail)})
}

// parts returns the uncompressed body.
func (r *request) parts(head, tail []byte) []framePart {
	parts := []framePart{{Literal: head}}
	for i := range r.batches {
		b := &r.batches[i]
		if b.Entries+b.Items == 0 {
			continue
		}
		if len(parts) > 1 {
			parts = append(parts, framePart{Literal: []byte{','}})
		}
		parts = append(parts, framePart{Packed: b})
	}
	return append(parts, framePart{Literal: tail})
}

func newPayload(r *request, c *codecs, parts []framePart) payload {
	var length int64
	for _, p := range parts {
		length += p.Length()
	}
	return payload{length: length, open: func() io.ReadCloser {
		return frameBody(parts, c, &r.damaged)
	}}
}

var errNotEntries = errors.New("not JSON objects joined by commas")

// splitEntries finds the entries in what a batch holds: JSON objects joined by single commas. It returns copies.
func splitEntries(raw []byte) ([][]byte, error) {
	var list []json.RawMessage
	if json.Unmarshal(slices.Concat([]byte{'['}, raw, []byte{']'}), &list) != nil {
		return nil, errNotEntries
	}
	entries, length := make([][]byte, len(list)), max(0, len(list)-1)
	for i, e := range list {
		if !bytes.HasPrefix(e, []byte{'{'}) {
			return nil, errNotEntries
		}
		entries[i] = e
		length += len(e)
	}
	if length != len(raw) {
		return nil, errNotEntries
	}
	return entries, nil
}

// lineIndex reads N from an entry that starts with {"line_index":N. White space may follow: an object without members
// keeps what is between its braces.
func lineIndex(entry []byte) (line int64, ok bool) {
	digits, ok := bytes.CutPrefix(entry, []byte(`{"line_index":`))
	if !ok {
		return 0, false
	}
	const most = 18 // digits that always fit an int64
	n := 0
	for n < len(digits) && n < most && digits[n] >= '0' && digits[n] <= '9' {
		line = line*10 + int64(digits[n]-'0')
		n++
	}
	return line, n > 0 && n < len(digits) && bytes.IndexByte([]byte(",} \t\r"), digits[n]) >= 0
}

// halve splits a batch of at least two entries or items into its first and second half. Both keep the whole's span.
// Its error is a *damageError.
func (c *codecs) halve(b *Batch) (first, second Batch, err error) {
	raw, err := c.Unpack(nil, b)
	if err != nil {
		return first, second, err
	}
	parts, err := splitEntries(raw)
	if err == nil && len(parts) < 2 {
		err = errors.New("fewer entries than the header says")
	}
	if err != nil {
		return first, second, &damageError{Seq: b.Seq, Err: err}
	}
	middle := len(parts) / 2
	var line int64
	if !b.Kind.artifact() {
		var ok bool
		if line, ok = lineIndex(parts[middle]); !ok {
			return first, second, &damageError{Seq: b.Seq, Err: errors.New("entry without line_index")}
		}
	}
	// Entries lie side by side in raw, a comma between them.
	cut := 0
	for _, e := range parts[:middle] {
		cut += len(e) + 1
	}
	first, second = *b, *b
	if first.Entries, second.Entries = middle, len(parts)-middle; b.Kind.artifact() {
		first.Items, second.Items = first.Entries, second.Entries
		first.Entries, second.Entries = 0, 0
		second.From.Line += int64(middle) // distinguishes the dead letters of one batch
	}
	first.Raw, second.Raw = int64(cut-1), int64(len(raw)-cut)
	first.Frame, second.Frame = c.Pack(nil, raw[:cut-1]), c.Pack(nil, raw[cut:])
	first.Edges, second.Edges = nil, nil
	for _, e := range b.Edges {
		if e.Line < line {
			first.Edges = append(first.Edges, e)
		} else {
			second.Edges = append(second.Edges, e)
		}
	}
	return first, second, nil
}
