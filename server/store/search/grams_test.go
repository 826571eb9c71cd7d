package search

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/ccship/ccship/e2e/kit"
)

// segment is one as it is stored, with the texts of its docs by position.
type gramsSegment struct{ docs, grams []page }

func (s *gramsSegment) keep(p page) error {
	if p.Part == docPage {
		s.docs = append(s.docs, p)
	} else {
		s.grams = append(s.grams, p)
	}
	return nil
}

func (s *gramsSegment) all(t kit.T) (out []doc) {
	for _, p := range s.docs {
		kit.Require(t, p.First == int64(len(out)), "a page of docs from %d on begins at %d", len(out), p.First)
		docs := kit.Try(readDocs(p)).Must(t)
		out = append(out, docs...)
	}
	return out
}

func (s *gramsSegment) source(t kit.T) source {
	i := 0
	return source{Docs: s.all(t), Next: func() (page, bool, error) {
		if i++; i > len(s.grams) {
			return page{}, false, nil
		}
		return s.grams[i-1], true, nil
	}}
}

// candidates are the docs that a plan leads to.
func (s *gramsSegment) candidates(t kit.T, plan plan) []uint32 {
	lists := kit.Each(plan.All, func(k key) []uint32 { return s.between(t, k, k) })
	lists = append(lists, kit.Each(plan.Any, func(r gramRange) []uint32 { return s.between(t, r.From, r.To) })...)
	if len(lists) == 0 {
		var out []uint32
		for i := range s.all(t) {
			out = append(out, uint32(i))
		}
		return out
	}
	for len(lists) > 1 {
		lists = append(lists[2:], both(lists[0], lists[1]))
	}
	return lists[0]
}

func (s *gramsSegment) between(t kit.T, from, to key) (out []uint32) {
	for i, p := range s.grams {
		if key(p.First) > to || i+1 < len(s.grams) && key(s.grams[i+1].First) <= from {
			continue
		}
		for g := readGrams(p); ; {
			k, docs, more, err := g.Next(func(k key) bool { return k >= from && k <= to })
			kit.Must(t, err)
			if !more {
				break
			}
			kit.Require(t, len(docs) == 0 || k >= from && k <= to, "gram %x is not asked for", k)
			out = append(out, docs...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// text is what was indexed.
type text struct {
	stream, line int64
	folded       string
}

// build indexes texts, whose lines ascend.
func build(t kit.T, texts []text) *gramsSegment {
	var b builder
	for _, x := range texts {
		d := b.Last()
		at := line{Index: x.line, Time: x.stream*7919%100 + x.line}
		switch {
		case d == nil || d.Stream != x.stream || !d.fits(x.line, int64(len(x.folded))):
			b.Begin(doc{Stream: x.stream, Epoch: 3, Generation: 1, Round: 2, Kinds: 5, Lines: []line{at}})
			d = b.Last()
		default:
			d.Lines = append(d.Lines, at)
		}
		d.Size += int64(len(x.folded))
		b.Text([]byte(x.folded))
	}
	var s gramsSegment
	kit.Must(t, b.Write(newWriter(s.keep)))
	return &s
}

func genTexts(t *rapid.T) []text {
	words := rapid.SampledFrom([]string{"a", "ab", "abc", "needle", "needles", "검색", "확", "ä", "😀", "func (s *x)", "  ", "the", "zq"})
	var out []text
	for stream := range int64(rapid.IntRange(1, 4).Draw(t, "streams")) {
		line := int64(0)
		for range rapid.IntRange(0, 12).Draw(t, "lines") {
			line += int64(rapid.IntRange(1, 20).Draw(t, "step"))
			x := strings.Join(rapid.SliceOfN(words, 1, 5).Draw(t, "words"), rapid.SampledFrom([]string{"", " "}).Draw(t, "sep"))
			if rapid.IntRange(0, 9).Draw(t, "long") == 0 {
				x = strings.Repeat(x, 500)
			}
			out = append(out, text{stream, line, x})
		}
	}
	return out
}

// complete: every text that holds what is looked for is in a candidate.
func complete(t kit.T, s *gramsSegment, texts []text, needles []string) {
	docs := s.all(t)
	found := map[[2]int64]bool{}
	last := int64(-1 << 62)
	for i := range docs {
		if n := docs[i].Newest(); n < last {
			t.Fatalf("doc %d is older than the one before", i)
		} else {
			last = n
		}
	}
	for _, n := range s.candidates(t, planOf(needles)) {
		for _, l := range docs[n].Lines {
			kit.Require(t, l.Time == docs[n].Stream*7919%100+l.Index, "line %d has time %d", l.Index, l.Time)
			found[[2]int64{docs[n].Stream, l.Index}] = true
		}
	}
	for _, x := range texts {
		has := true
		for _, n := range needles {
			has = has && strings.Contains(x.folded, n)
		}
		kit.Require(t, !has || found[[2]int64{x.stream, x.line}], "%q in %.100q is not found", needles, x.folded)
	}
}

func needlesOf(t *rapid.T, texts []text) []string {
	var out []string
	for range rapid.IntRange(1, 3).Draw(t, "needles") {
		r := []rune("xyz")
		if len(texts) > 0 {
			r = []rune(rapid.SampledFrom(texts).Draw(t, "of").folded)
		}
		from := rapid.IntRange(0, len(r)-1).Draw(t, "from")
		out = append(out, string(r[from:min(len(r), from+rapid.IntRange(1, 8).Draw(t, "len"))]))
	}
	return out
}

// TestFinds: what a scan of the texts finds is found with the index, with one segment and with merged ones.
func TestFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := genTexts(t)
		whole := build(t, texts)
		var parts []source
		for rest := texts; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "part")
			parts = append(parts, build(t, rest[:n]).source(t))
			rest = rest[n:]
		}
		var merged gramsSegment
		kit.Must(t, merge(parts, newWriter(merged.keep)))
		for range 5 {
			needles := needlesOf(t, texts)
			complete(t, whole, texts, needles)
			complete(t, &merged, texts, needles)
		}
		lines := 0
		for _, d := range merged.all(t) {
			lines += len(d.Lines)
		}
		kit.Require(t, lines == len(texts), "%d lines of %d are left", lines, len(texts))
	})
}

// TestOrder: grams come in the order of their keys, however many there are and whatever characters they have.
func TestOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, from := range []rune{1, 0x700, 0xac00, 0x1f600} {
		var texts []text
		for line := range int64(40) {
			x := []byte{}
			for range 400 {
				x = utf8.AppendRune(x, from+rune(r.IntN(300)))
			}
			texts = append(texts, text{1, line, string(x)})
		}
		s := build(t, texts)
		before, n := int64(-1), 0
		for _, p := range s.grams {
			for g := readGrams(p); ; n++ {
				k, _, more, err := g.Next(nil)
				kit.Must(t, err)
				if !more {
					break
				}
				kit.Require(t, int64(k) > before, "gram %x follows %x", k, before)
				before = int64(k)
			}
		}
		kit.Check(t, n >= 10_000, "%d grams", n)
		for _, x := range texts {
			c := []rune(x.folded)
			complete(t, s, texts, []string{string(c[7:10]), string(c[len(c)-2:])})
		}
	}
}

// TestFew: a rare word leads to few docs, not to all.
func TestFew(t *testing.T) {
	var texts []text
	for i := range int64(1000) {
		texts = append(texts, text{1, i * 100, fmt.Sprintf("common words and number %d", i)})
	}
	texts[500].folded += " xylophone"
	s := build(t, texts)
	for _, n := range []string{"xylophone", "xy", "number 77"} {
		got := s.candidates(t, planOf([]string{n}))
		kit.Check(t, len(got) != 0 && len(got) <= 30, "%q: %d candidates", n, len(got))
	}
}

// TestMergeLeavesOut: nothing remains of docs that are left out, in docs or grams.
func TestMergeLeavesOut(t *testing.T) {
	s := build(t, []text{{1, 1, "the secret word"}, {2, 1, "the other one"}})
	src := s.source(t)
	src.Keep = func(d *doc) bool { return d.Stream == 2 }
	var out gramsSegment
	kit.Must(t, merge([]source{src}, newWriter(out.keep)))
	docs := out.all(t)
	kit.Check(t, len(docs) == 1 && docs[0].Stream == 2, "%+v", docs)
	kit.Equal(t, "docs", out.between(t, 0, 1<<63-1), []uint32{0})
	k := planOf([]string{"secret"}).All[0]
	kit.Check(t, len(out.between(t, k, k)) <= 0, "grams of the secret are left")
}

// TestJoin: small docs of consecutive lines become larger ones, and no line goes to another generation.
func TestJoin(t *testing.T) {
	var parts []source
	for i := range int64(40) {
		parts = append(parts, build(t, []text{{1, i, "a text of a line"}}).source(t))
	}
	other := build(t, []text{{1, 40, "later"}}).source(t)
	other.Docs[0].Generation++
	var out gramsSegment
	kit.Must(t, merge(append(parts, other), newWriter(out.keep)))
	docs := out.all(t)
	kit.Check(t, len(docs) == 2 && len(docs[0].Lines)+len(docs[1].Lines) == 41, "%+v", docs)
}

// FuzzRead: whatever bytes are read, the answer is docs and grams, or ErrCorrupt.
func FuzzRead(f *testing.F) {
	s := build(f, []text{{1, 1, "a text"}, {1, 2, "another text"}, {9, 1, strings.Repeat("long ", 99)}})
	f.Add(s.docs[0].Data, s.grams[0].Data)
	f.Add([]byte{1, 2, 3}, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0xff})
	f.Fuzz(func(t *testing.T, docs, grams []byte) {
		list, err := readDocs(page{Data: docs})
		kit.Require(t, err == nil || errors.Is(err, errCorrupt), "%v", err)
		for _, d := range list {
			kit.Check(t, len(d.Lines) != 0, "a doc without lines")
		}
		src := source{Docs: list}
		once := true
		src.Next = func() (page, bool, error) {
			was := once
			once = false
			return page{Data: grams}, was, nil
		}
		var out gramsSegment
		err = merge([]source{src}, newWriter(out.keep))
		kit.Require(t, err == nil || errors.Is(err, errCorrupt), "%v", err)
	})
}
