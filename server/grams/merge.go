package grams

import (
	"cmp"
	"fmt"
	"slices"
)

// Source is a segment to be merged.
type Source struct {
	Docs []Doc
	Keep func(*Doc) bool // nil: all
	// Next is the next page of grams, in ascending order; false behind the last.
	Next func() (Page, bool, error)

	number []int64 // new ones of the docs; -1: left out
	page   *Grams
	key    Key
	docs   []uint32
	done   bool
}

// Merge gives one segment with the docs of all sources to a writer. Docs that follow each other become one where a doc
// has room.
func Merge(sources []Source, to *Writer) error {
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

// lowest is the gram that comes next; false when all are read.
func lowest(sources []Source) (key Key, some bool) {
	for i := range sources {
		if s := &sources[i]; !s.done && (!some || s.key < key) {
			key, some = s.key, true
		}
	}
	return key, some
}

// renumbered appends the new numbers of the docs that have the gram.
func (s *Source) renumbered(to []uint32) []uint32 {
	for _, d := range s.docs {
		if n := s.number[d]; n >= 0 {
			to = append(to, uint32(n))
		}
	}
	return to
}

// advance reads the next gram.
func (s *Source) advance() error {
	for {
		if s.page != nil {
			key, docs, more, err := s.page.Next(nil)
			if err != nil {
				return err
			}
			if more {
				if len(docs) > 0 && int(docs[len(docs)-1]) >= len(s.number) {
					return fmt.Errorf("gram of a doc that is not there: %w", ErrCorrupt)
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
		s.page = ReadGrams(page)
	}
}

// joined are the docs that are kept, in their new order; the sources get the new numbers.
func joined(sources []Source) []Doc {
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
	doc := func(p place) *Doc { return &sources[p.source].Docs[p.doc] }
	slices.SortStableFunc(kept, func(a, b place) int {
		x, y := doc(a), doc(b)
		return cmp.Or(cmp.Compare(x.Stream, y.Stream), cmp.Compare(x.Epoch, y.Epoch),
			cmp.Compare(x.Generation, y.Generation), cmp.Compare(x.Round, y.Round), cmp.Compare(x.First(), y.First()))
	})
	var docs []Doc
	at := make([]int, len(kept))
	for i, p := range kept {
		d := doc(p)
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
func (d *Doc) join(b *Doc) {
	d.Kinds |= b.Kinds
	d.Size += b.Size
	d.Lines = slices.Concat(d.Lines, b.Lines)
	d.Carried = slices.Concat(d.Carried, b.Carried)
}
