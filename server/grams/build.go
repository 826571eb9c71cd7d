package grams

import (
	"cmp"
	"slices"
)

// Builder collects docs and their texts.
type Builder struct {
	docs  []Doc
	slots []slot // open addressing; their number is a power of two
	grams []gram
	pairs []pair // each gram of a doc once, in the order of docs
}

// slot is a place of the table: an index into grams, one more than it.
type slot struct {
	key Key
	at  uint32
}

type gram struct {
	key   Key
	last  uint32 // the newest doc that has it
	count uint32 // of docs
}

// pair says that a doc has a gram.
type pair struct{ gram, doc uint32 }

// Docs is how many docs there are.
func (b *Builder) Docs() int { return len(b.docs) }

// Last is the newest of the docs, to be changed in place; nil without any.
func (b *Builder) Last() *Doc {
	if len(b.docs) == 0 {
		return nil
	}
	return &b.docs[len(b.docs)-1]
}

// Begin adds a doc; texts go to it until the next.
func (b *Builder) Begin(d Doc) { b.docs = append(b.docs, d) }

// Text adds a text in its searchable form to the newest doc.
func (b *Builder) Text(folded string) {
	var k Key
	n := 0
	for _, r := range folded {
		k = k<<runeBits&keyMask | Key(r)
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

func (b *Builder) add(k Key) {
	doc := uint32(len(b.docs) - 1)
	if 2*len(b.grams) >= len(b.slots) {
		b.grow()
	}
	mask := uint64(len(b.slots) - 1)
	for i := mix(k) & mask; ; i = (i + 1) & mask {
		s := &b.slots[i]
		if s.key == k && s.at > 0 {
			if g := &b.grams[s.at-1]; g.last != doc {
				g.last = doc
				g.count++
				b.pairs = append(b.pairs, pair{s.at - 1, doc})
			}
			return
		}
		if s.at == 0 {
			b.pairs = append(b.pairs, pair{uint32(len(b.grams)), doc})
			b.grams = append(b.grams, gram{k, doc, 1})
			*s = slot{k, uint32(len(b.grams))}
			return
		}
	}
}

func (b *Builder) grow() {
	b.slots = make([]slot, max(firstSlots, 4*len(b.slots)))
	mask := uint64(len(b.slots) - 1)
	for n, g := range b.grams {
		i := mix(g.key) & mask
		for b.slots[i].at != 0 {
			i = (i + 1) & mask
		}
		b.slots[i] = slot{g.key, uint32(n + 1)}
	}
}

func mix(k uint64) uint64 {
	k *= 0x9e3779b97f4a7c15
	return k >> 29
}

// Write gives the segment to a writer, and empties the builder.
func (b *Builder) Write(to *Writer) error {
	docs, number := inOrder(b.docs)
	for i := range docs {
		if err := to.Doc(&docs[i]); err != nil {
			return err
		}
	}
	lists, at := make([]uint32, len(b.pairs)), make([]uint32, len(b.grams))
	from := uint32(0)
	for i, g := range b.grams {
		at[i] = from
		from += g.count
	}
	for _, p := range b.pairs {
		lists[at[p.gram]] = number[p.doc]
		at[p.gram]++
	}
	order := make([]slot, len(b.grams))
	for i, g := range b.grams {
		order[i] = slot{g.key, uint32(i)}
	}
	slices.SortFunc(order, func(x, y slot) int { return cmp.Compare(x.key, y.key) })
	for _, o := range order {
		list := lists[at[o.at]-b.grams[o.at].count : at[o.at]]
		if !slices.IsSorted(list) {
			slices.Sort(list)
		}
		if err := to.Gram(o.key, list); err != nil {
			return err
		}
	}
	*b = Builder{}
	return to.Flush()
}

// inOrder numbers docs from the one with the oldest newest line on: docs in the new order, and the new numbers of the
// old ones.
func inOrder(docs []Doc) (sorted []Doc, number []uint32) {
	type place struct {
		newest int64
		doc    int
	}
	order := make([]place, len(docs))
	for i := range docs {
		order[i] = place{docs[i].Newest(), i}
	}
	slices.SortStableFunc(order, func(a, b place) int { return cmp.Compare(a.newest, b.newest) })
	sorted, number = make([]Doc, len(docs)), make([]uint32, len(docs))
	for i, p := range order {
		sorted[i], number[p.doc] = docs[p.doc], uint32(i)
	}
	return sorted, number
}
