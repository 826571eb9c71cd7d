package search

import (
	"cmp"
	"fmt"
	"slices"
)

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
