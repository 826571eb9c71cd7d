package search

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"
)

// builder collects docs and their texts. Its memory serves the next segment too.
type builder struct {
	docs  []doc
	slots []slot // open addressing; their number is a power of two
	grams []key  // in the order in which they came
	pairs []pair // each gram of a doc once, in the order of docs
	seen  []key  // of the newest doc: grams that it has, each at its position if no later one has the same
}

// slot is a position of the table: an index into grams, one more than it, and the newest doc that has the gram.
type slot struct {
	key  key
	at   uint32
	last uint32
}

// pair says that a doc has a gram.
type pair struct{ gram, doc uint32 }

// seenBits is how many bits a position in seen has: what is asked for each character stays in the processor's first
// cache.
const seenBits = 12

// Docs returns how many docs there are.
func (b *builder) Docs() int { return len(b.docs) }

// Last returns the newest of the docs, to be changed in place; nil without any.
func (b *builder) Last() *doc {
	if len(b.docs) == 0 {
		return nil
	}
	return &b.docs[len(b.docs)-1]
}

// Begin adds a doc; texts go to it until the next.
func (b *builder) Begin(d doc) {
	b.docs = append(b.docs, d)
	if b.seen == nil {
		b.seen = make([]key, 1<<seenBits)
	}
	clear(b.seen)
}

// Text adds a text in its searchable form to the newest doc. It has no zero characters.
func (b *builder) Text(folded []byte) {
	var k key
	n := 0
	for i := 0; i < len(folded); {
		r, size := rune(folded[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(folded[i:])
		}
		i += size
		k = k<<runeBits&keyMask | key(r)
		if n++; n > 2 {
			b.add(k)
		}
	}
	for range 2 * min(n, 1) {
		k = k << runeBits & keyMask
		if n++; n > 2 {
			b.add(k)
		}
	}
}

const firstSlots = 1 << 12

func (b *builder) add(k key) {
	h := mix(k)
	s := &b.seen[h>>(64-seenBits)]
	if *s != k {
		*s = k
		b.count(k, h)
	}
}

// count adds a gram to the newest doc, unless it has it.
func (b *builder) count(k key, h uint64) {
	doc := uint32(len(b.docs) - 1)
	if 2*len(b.grams) >= len(b.slots) {
		b.grow()
	}
	mask := uint64(len(b.slots) - 1)
	for i := h >> slotShift & mask; ; i = (i + 1) & mask {
		s := &b.slots[i]
		if s.at > 0 && s.key == k {
			if s.last != doc {
				s.last = doc
				b.pairs = append(b.pairs, pair{s.at - 1, doc})
			}
			return
		}
		if s.at == 0 {
			b.pairs = append(b.pairs, pair{uint32(len(b.grams)), doc})
			b.grams = append(b.grams, k)
			*s = slot{k, uint32(len(b.grams)), doc}
			return
		}
	}
}

func (b *builder) grow() {
	old := b.slots
	b.slots = make([]slot, max(firstSlots, 4*len(old)))
	mask := uint64(len(b.slots) - 1)
	for _, s := range old {
		if s.at == 0 {
			continue
		}
		i := mix(s.key) >> slotShift & mask
		for b.slots[i].at != 0 {
			i = (i + 1) & mask
		}
		b.slots[i] = s
	}
}

// slotShift leaves out the bits of a hash that are the worst mixed.
const slotShift = 29

func mix(k key) uint64 { return k * 0x9e3779b97f4a7c15 }

// Write gives the segment to a writer, and empties the builder.
func (b *builder) Write(to *writer) error {
	docs, err := b.Grams(to)
	if err != nil {
		return err
	}
	for i := range docs {
		if err := to.Doc(&docs[i]); err != nil {
			return err
		}
	}
	return to.Flush()
}

// Grams is Write without the docs: it returns them in their order.
func (b *builder) Grams(to *writer) ([]doc, error) {
	defer b.reset()
	docs, number := inOrder(b.docs)
	ends := make([]uint32, len(b.grams)+1) // first the number of docs, then where they begin, then where they end
	for _, p := range b.pairs {
		ends[p.gram+1]++
	}
	for i := range b.grams {
		ends[i+1] += ends[i]
	}
	lists := make([]uint32, len(b.pairs))
	for _, p := range b.pairs {
		lists[ends[p.gram]] = number[p.doc]
		ends[p.gram]++
	}
	for _, g := range sorted(b.grams) {
		from := uint32(0)
		if g.at > 0 {
			from = ends[g.at-1]
		}
		list := lists[from:ends[g.at]]
		if !slices.IsSorted(list) {
			slices.Sort(list)
		}
		if err := to.Gram(g.key, list); err != nil {
			return nil, err
		}
	}
	return docs, to.Flush()
}

// keptPairs and keptSlots bound the memory that a builder keeps, of about a MB of texts.
const (
	keptPairs = 1 << 19
	keptSlots = 1 << 18
)

// reset empties the builder. It keeps what the next segment would need again; a table that is mostly empty costs more
// to clear than a new one.
func (b *builder) reset() {
	next := builder{seen: b.seen}
	if cap(b.pairs) <= keptPairs {
		next.pairs, next.grams = b.pairs[:0], b.grams[:0]
	}
	if len(b.slots) <= keptSlots && len(b.slots) <= 8*len(b.grams) {
		next.slots = b.slots
		clear(next.slots)
	}
	*b = next
}

// inOrder numbers docs from the one with the oldest newest line on: docs in the new order, and the new numbers of the
// old ones.
func inOrder(docs []doc) (sorted []doc, number []uint32) {
	type place struct {
		newest int64
		doc    int
	}
	order := make([]place, len(docs))
	for i := range docs {
		order[i] = place{docs[i].Newest(), i}
	}
	slices.SortStableFunc(order, func(a, b place) int { return cmp.Compare(a.newest, b.newest) })
	sorted, number = make([]doc, len(docs)), make([]uint32, len(docs))
	for i, p := range order {
		sorted[i], number[p.doc] = docs[p.doc], uint32(i)
	}
	return sorted, number
}

// source is a segment to be merged.
type source struct {
	Docs []doc
	Keep func(*doc) bool // nil: all
	// Next is the next page of grams, in ascending order; false behind the last.
	Next func() (page, bool, error)

	number []int64 // new ones of the docs; -1: left out
	page   *grams
	key    key
	docs   []uint32
	done   bool
}

// merge gives one segment with the docs of all sources to a writer. Docs that follow each other become one where a doc
// has space.
func merge(sources []source, to *writer) error {
	docs := joined(sources)
	for i := range docs {
		if err := to.Doc(&docs[i]); err != nil {
			return err
		}
	}
	for i := range sources {
		if err := sources[i].advance(); err != nil {
			return err
		}
	}
	var list []uint32
	for {
		key, some := lowest(sources)
		if !some {
			return to.Flush()
		}
		list = list[:0]
		for i := range sources {
			s := &sources[i]
			if s.done || s.key != key {
				continue
			}
			list = s.renumbered(list)
			if err := s.advance(); err != nil {
				return err
			}
		}
		if len(list) == 0 {
			continue
		}
		slices.Sort(list)
		list = slices.Compact(list)
		if err := to.Gram(key, list); err != nil {
			return err
		}
	}
}

// lowest returns the gram that comes next; false when all are read.
func lowest(sources []source) (key key, some bool) {
	for i := range sources {
		if s := &sources[i]; !s.done && (!some || s.key < key) {
			key, some = s.key, true
		}
	}
	return key, some
}

// renumbered appends the new numbers of the docs that have the gram.
func (s *source) renumbered(to []uint32) []uint32 {
	for _, d := range s.docs {
		if n := s.number[d]; n >= 0 {
			to = append(to, uint32(n))
		}
	}
	return to
}

// advance reads the next gram.
func (s *source) advance() error {
	for {
		if s.page != nil {
			key, docs, more, err := s.page.Next(nil)
			if err != nil {
				return err
			}
			if more {
				if len(docs) > 0 && int(docs[len(docs)-1]) >= len(s.number) {
					return fmt.Errorf("gram of a doc that is not there: %w", errCorrupt)
				}
				s.key, s.docs = key, docs
				return nil
			}
		}
		page, more, err := s.Next()
		if err != nil {
			return err
		}
		if !more {
			s.done = true
			return nil
		}
		s.page = readGrams(page)
	}
}

// joined returns the docs that are kept, in their new order; the sources get the new numbers.
func joined(sources []source) []doc {
	type place struct{ source, doc int }
	var kept []place
	for i := range sources {
		s := &sources[i]
		s.number = make([]int64, len(s.Docs))
		for k := range s.Docs {
			s.number[k] = -1
			if s.Keep == nil || s.Keep(&s.Docs[k]) {
				kept = append(kept, place{i, k})
			}
		}
	}
	docAt := func(p place) *doc { return &sources[p.source].Docs[p.doc] }
	slices.SortStableFunc(kept, func(a, b place) int {
		x, y := docAt(a), docAt(b)
		return cmp.Or(cmp.Compare(x.Stream, y.Stream), cmp.Compare(x.Epoch, y.Epoch),
			cmp.Compare(x.Generation, y.Generation), cmp.Compare(x.Round, y.Round), cmp.Compare(x.First(), y.First()))
	})
	var docs []doc
	at := make([]int, len(kept))
	for i, p := range kept {
		d := docAt(p)
		if n := len(docs); n > 0 && docs[n-1].follows(d) {
			docs[n-1].join(d)
		} else {
			docs = append(docs, *d)
		}
		at[i] = len(docs) - 1
	}
	docs, number := inOrder(docs)
	for i, p := range kept {
		sources[p.source].number[p.doc] = int64(number[at[i]])
	}
	return docs
}

// join adds a doc that follows.
func (d *doc) join(b *doc) {
	if d.Kinds&turnKind != 0 {
		d.joinTurn(b)
		return
	}
	d.Kinds |= b.Kinds
	d.Size += b.Size
	d.Lines = slices.Concat(d.Lines, b.Lines)
	d.Carried = slices.Concat(d.Carried, b.Carried)
}
