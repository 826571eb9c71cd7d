package search

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// What a page has.
const (
	docPage  = 0 // docs; its first is a number
	gramPage = 1 // grams; its first is a key
)

// page is a part of a segment.
type page struct {
	Part  int
	First int64 // of what is in it
	Data  []byte
}

const (
	// pageDocs is how many docs a page has.
	pageDocs = 128
	// pageBytes is about how many bytes a page of grams has. One with a long list of docs has more.
	pageBytes = 7 << 10
	// maxDocs bounds a segment.
	maxDocs = 1 << 22
)

// writer makes pages of docs, and then of grams in ascending order.
type writer struct {
	emit  func(page) error
	docs  []doc
	n     int64 // docs before those
	page  []byte
	first key
	prev  key
}

// newWriter returns a writer that hands each page to emit, which keeps it.
func newWriter(emit func(page) error) *writer { return &writer{emit: emit} }

// Doc adds the next doc.
func (w *writer) Doc(d *doc) error {
	if w.docs = append(w.docs, *d); len(w.docs) < pageDocs {
		return nil
	}
	return w.flushDocs()
}

func (w *writer) flushDocs() error {
	if len(w.docs) == 0 {
		return nil
	}
	p := page{docPage, w.n, squeeze(appendDocs(nil, w.docs))}
	w.n += int64(len(w.docs))
	w.docs = w.docs[:0]
	return w.emit(p)
}

// Gram adds the next gram and the docs that have it, ascending, at least one.
func (w *writer) Gram(k key, docs []uint32) error {
	if len(w.page) >= pageBytes {
		if err := w.flushGrams(); err != nil {
			return err
		}
	}
	if len(w.page) == 0 {
		w.first, w.prev = k, k
	}
	w.page = binary.AppendUvarint(w.page, k-w.prev)
	w.page = appendPosting(w.page, docs)
	w.prev = k
	return nil
}

func (w *writer) flushGrams() error {
	if len(w.page) == 0 {
		return nil
	}
	p := page{gramPage, int64(w.first), w.page}
	w.page = nil
	return w.emit(p)
}

// Flush hands out what is left.
func (w *writer) Flush() error { return errors.Join(w.flushDocs(), w.flushGrams()) }

// appendPosting appends how many docs there are, and either the steps from each to the next, or, where that is
// shorter, a bit for each number.
func appendPosting(to []byte, docs []uint32) []byte {
	last := docs[len(docs)-1]
	bits := int(last-docs[0])/8 + 1
	if len(docs) > bits {
		to = binary.AppendUvarint(to, uint64(len(docs))<<1|1)
		to = binary.AppendUvarint(to, uint64(docs[0]))
		to = binary.AppendUvarint(to, uint64(bits))
		from := len(to)
		to = append(to, make([]byte, bits)...)
		for _, d := range docs {
			to[from+int(d-docs[0])/8] |= 1 << ((d - docs[0]) % 8)
		}
		return to
	}
	to = binary.AppendUvarint(to, uint64(len(docs))<<1)
	before := uint32(0)
	for i, d := range docs {
		step := d - before
		if i > 0 {
			step--
		}
		to = binary.AppendUvarint(to, uint64(step))
		before = d
	}
	return to
}

// errCorrupt is for bytes that no Writer made.
var errCorrupt = errors.New("corrupt index")

// reader takes numbers from a page.
type reader struct {
	data []byte
	at   int
	bad  bool
}

func (r *reader) left() int { return len(r.data) - r.at }

func (r *reader) fail() { r.bad, r.at = true, len(r.data) }

func (r *reader) uint() uint64 {
	if r.at < len(r.data) && r.data[r.at] < 0x80 {
		r.at++
		return uint64(r.data[r.at-1])
	}
	v, n := binary.Uvarint(r.data[r.at:])
	if n <= 0 {
		r.fail()
		return 0
	}
	r.at += n
	return v
}

// skip leaves out n numbers.
func (r *reader) skip(n int) {
	for ; n > 0 && r.at < len(r.data); r.at++ {
		if r.data[r.at] < 0x80 {
			n--
		}
	}
	if n > 0 {
		r.fail()
	}
}

func (r *reader) int() int64 {
	v := r.uint()
	return int64(v>>1) ^ -int64(v&1)
}

// upTo returns a number that is at most limit.
func (r *reader) upTo(limit uint64) int {
	v := r.uint()
	if v > limit {
		r.fail()
		return 0
	}
	return int(v)
}

func (r *reader) bytes(n int) []byte {
	if n > r.left() {
		r.fail()
		return nil
	}
	r.at += n
	return r.data[r.at-n : r.at]
}

// grams reads a page of grams: each of them in order, with its docs. posting is valid until the next one is read.
type grams struct {
	r    reader
	key  key
	docs []uint32
}

// readGrams begins to read a page.
func readGrams(p page) *grams { return &grams{r: reader{data: p.Data}, key: key(p.First)} }

// seek leaves out whole grams below one.
func (g *grams) seek(from key) {
	data, key := g.r.data, g.key
	for at := g.r.at; at < len(data); {
		step, next := number(data, at)
		if key += step; key >= from {
			return
		}
		head, next := number(data, next)
		if head&1 == 1 {
			_, next = number(data, next)
			var bits uint64
			bits, next = number(data, next)
			next += int(min(bits, maxDocs))
		} else {
			for n := head >> 1; n > 0; next++ {
				if next >= len(data) {
					return
				}
				if data[next] < 0x80 {
					n--
				}
			}
		}
		if next > len(data) {
			return
		}
		at, g.r.at, g.key = next, next, key
	}
}

// number returns the number at a place, and where the next one begins: beyond the end if it has no end.
func number(data []byte, at int) (v uint64, next int) {
	for shift := 0; at < len(data); shift += 7 {
		b := data[at]
		at++
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, at
		}
	}
	return 0, len(data) + 1
}

// Next reads the next gram; false behind the last.
func (g *grams) Next(wanted func(key) bool) (key key, docs []uint32, more bool, err error) {
	if g.r.left() == 0 {
		return 0, nil, false, g.err()
	}
	g.key += g.r.uint()
	head := g.r.upTo(maxDocs<<1 | 1)
	g.docs = g.docs[:0]
	want := wanted == nil || wanted(g.key)
	if head&1 == 1 {
		g.bitmap(want)
	} else {
		g.steps(head>>1, want)
	}
	if g.r.bad {
		return 0, nil, false, g.err()
	}
	return g.key, g.docs, true, nil
}

func (g *grams) err() error {
	if g.r.bad {
		return fmt.Errorf("page of grams: %w", errCorrupt)
	}
	return nil
}

func (g *grams) bitmap(want bool) {
	from := uint32(g.r.upTo(maxDocs))
	bits := g.r.bytes(g.r.upTo(maxDocs / 8))
	if !want {
		return
	}
	for i, b := range bits {
		for k := range uint32(8) {
			if b>>k&1 == 1 {
				g.docs = append(g.docs, from+uint32(i)*8+k)
			}
		}
	}
}

func (g *grams) steps(n int, want bool) {
	if !want {
		g.r.skip(n)
		return
	}
	at := uint64(0)
	for i := range n {
		step := g.r.uint()
		if i > 0 {
			step++
		}
		if at += step; step > maxDocs || at > maxDocs || g.r.bad {
			g.r.bad = true
			return
		}
		g.docs = append(g.docs, uint32(at))
	}
}

// appendDocs appends docs, each by what differs from the one before.
func appendDocs(to []byte, docs []doc) []byte {
	var before doc
	clock := int64(0)
	for i := range docs {
		d := &docs[i]
		to = binary.AppendVarint(to, d.Stream-before.Stream)
		to = binary.AppendVarint(to, d.Epoch-before.Epoch)
		to = binary.AppendVarint(to, d.Generation-before.Generation)
		to = binary.AppendVarint(to, d.Round-before.Round)
		to = binary.AppendUvarint(to, uint64(d.Kinds))
		to = binary.AppendUvarint(to, uint64(d.Size))
		if d.Kinds&turnKind != 0 {
			to = binary.AppendVarint(to, d.Lines[0].Index-d.Turn)
		}
		to = binary.AppendUvarint(to, uint64(len(d.Lines)))
		line := int64(0)
		for _, l := range d.Lines {
			step := uint64(l.Index-line) << 1
			if l.Rest {
				step |= 1
			}
			to = binary.AppendUvarint(to, step)
			to = binary.AppendVarint(to, l.Time-clock)
			line, clock = l.Index, l.Time
		}
		to = binary.AppendUvarint(to, uint64(len(d.Carried)))
		for _, c := range d.Carried {
			to = binary.AppendVarint(to, c.Line)
			to = binary.AppendUvarint(to, uint64(c.Kind))
			to = binary.AppendUvarint(to, uint64(len(c.Text)))
			to = append(to, c.Text...)
		}
		before = *d
	}
	return to
}

// readDocs reads a page of docs.
func readDocs(p page) ([]doc, error) {
	data, err := unsqueeze(p.Data)
	if err != nil {
		return nil, err
	}
	r := &reader{data: data}
	var out []doc
	var before doc
	clock := int64(0)
	for r.left() > 0 {
		d := r.doc(&before, &clock)
		if r.bad || len(out) >= pageDocs {
			return nil, fmt.Errorf("page of docs: %w", errCorrupt)
		}
		out = append(out, d)
		before = d
	}
	if r.bad {
		return nil, fmt.Errorf("page of docs: %w", errCorrupt)
	}
	return out, nil
}

func (r *reader) doc(before *doc, clock *int64) (d doc) {
	d.Stream = before.Stream + r.int()
	d.Epoch = before.Epoch + r.int()
	d.Generation = before.Generation + r.int()
	d.Round = before.Round + r.int()
	d.Kinds = uint32(r.upTo(math.MaxUint32))
	d.Size = int64(r.upTo(math.MaxInt64))
	ahead := int64(0)
	if d.Kinds&turnKind != 0 {
		ahead = r.int()
	}
	lines := r.upTo(docLines)
	at := int64(0)
	d.Lines = make([]line, 0, lines)
	for range lines {
		step := r.uint()
		at += int64(step >> 1)
		*clock += r.int()
		d.Lines = append(d.Lines, line{at, *clock, step&1 == 1})
	}
	if lines > 0 {
		d.Turn = d.Lines[0].Index - ahead
	}
	for range r.upTo(uint64(r.left())) {
		c := carried{Line: r.int(), Kind: uint32(r.upTo(math.MaxUint32))}
		c.Text = string(r.bytes(r.upTo(uint64(r.left()))))
		if r.bad {
			break
		}
		d.Carried = append(d.Carried, c)
	}
	if lines == 0 {
		r.fail()
	}
	return d
}
