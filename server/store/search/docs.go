package search

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ccship/ccship/server"
)

// doc is the texts of lines of one generation.
type doc struct {
	Stream, Epoch, Generation int64
	Round                     int64  // which derivation of the stream it is from
	Turn                      int64  // the line of the prompt that began it; of other docs their first line
	Kinds                     uint32 // a bit for each kind of text in it
	Size                      int64  // bytes of its texts
	Lines                     []line // ascending, at least one
	Carried                   []carried
}

// line is a line with a text, and its time in microseconds.
type line struct {
	Index, Time int64
	Rest        bool // of a turn: nothing of it but results and what they say
}

// carried is a text that its line alone does not tell.
type carried struct {
	Line int64
	Kind uint32
	Text string
}

// First returns the doc's first line.
func (d *doc) First() int64 { return d.Lines[0].Index }

// Last returns the doc's last line.
func (d *doc) Last() int64 { return d.Lines[len(d.Lines)-1].Index }

// Newest returns the time of the newest line.
func (d *doc) Newest() int64 {
	at := int64(math.MinInt64)
	for _, l := range d.Lines {
		at = max(at, l.Time)
	}
	return at
}

// Oldest returns the time of the oldest line.
func (d *doc) Oldest() int64 {
	at := int64(math.MaxInt64)
	for _, l := range d.Lines {
		at = min(at, l.Time)
	}
	return at
}

const (
	// docBytes is about how much text a doc has: more make a smaller index, and candidates that cost more to read.
	docBytes = 4 << 10
	// docLines bounds a doc, for the sake of lines between them that have no text.
	docLines = 64
	// docGap is how many lines without texts may be within a doc.
	docGap = 16
)

// fits reports whether a line with so many bytes of text may join a doc as its next one.
func (d *doc) fits(line, size int64) bool {
	return d.Size+size <= docBytes && line > d.Last() && line-d.Last() <= docGap &&
		len(d.Lines) < docLines
}

// follows reports whether b may become a part of d.
func (d *doc) follows(b *doc) bool {
	if (d.Kinds|b.Kinds)&turnKind != 0 {
		return d.sameTurn(b)
	}
	return d.Stream == b.Stream && d.Epoch == b.Epoch && d.Generation == b.Generation && d.Round == b.Round &&
		len(d.Lines)+len(b.Lines) <= docLines && d.fits(b.First(), b.Size)
}

// key is a gram.
type key = uint64

// runeBits are those of a character. Behind the end of a text stand two zeros, so that each character begins a gram.
const runeBits = 21

// keyMask is the bits of a key: those of three characters, in the order of what they pack.
const keyMask = 1<<(3*runeBits) - 1

// place is where a text stands in the order of a search, which shows those with the highest one first.
type place struct {
	time, stream, epoch, generation, line int64
	kind                                  string
}

func compare(a, b place) int {
	return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.stream, b.stream), cmp.Compare(a.epoch, b.epoch),
		cmp.Compare(a.generation, b.generation), cmp.Compare(a.line, b.line), cmp.Compare(a.kind, b.kind))
}

// String returns the After of the page that follows the one ending there.
func (p place) String() string {
	return fmt.Sprintf("%d.%d.%d.%d.%d.%s", p.time, p.stream, p.epoch, p.generation, p.line, p.kind)
}

// timePlace returns the After of a page that begins with all that has a time.
func timePlace(at int64) string { return "t" + strconv.FormatInt(at, 10) }

// parsePlace reads an After; nil for the first page.
func parsePlace(after string) (*place, error) {
	if after == "" {
		return nil, nil //nolint:nilnil // the first page is after nothing
	}
	if rest, ok := strings.CutPrefix(after, "t"); ok {
		at, err := strconv.ParseInt(rest, 10, 64)
		if err != nil {
			return nil, server.ErrBadPage
		}
		return &place{at, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, ""}, nil
	}
	parts := strings.SplitN(after, ".", 6)
	if len(parts) != 6 {
		return nil, server.ErrBadPage
	}
	var n [5]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(parts[i], 10, 64); err != nil {
			return nil, server.ErrBadPage
		}
	}
	return &place{n[0], n[1], n[2], n[3], n[4], parts[5]}, nil
}

// A turn is a prompt and what follows it up to the next. Segments have turns next to the docs of runs: docs with the
// same encoding, and for each word, by where in the turn it stands, those that have it.

// field is where in a turn a word stands.
type field = uint8

const (
	inResult field = iota
	inOther        // thinking, messages of others, attachments
	inTool         // the beginning of what a tool is called with
	inAnswer
	oftenAnswered // more than once in answers
	inPrompt
	oftenPrompted
	inTitle
	fields
	fieldBits = 3
)

// fieldOf returns the field in which texts of a kind stand. false: the kind (files, commands, errors) repeats words
// that another text of the line has.
func fieldOf(kind string) (field, bool) {
	switch kind {
	case "prompt", server.HistoryKind:
		return inPrompt, true
	case "answer":
		return inAnswer, true
	case "tool":
		return inTool, true
	case "result":
		return inResult, true
	case "title":
		return inTitle, true
	case "message", "thinking", "other":
		return inOther, true
	}
	return 0, false
}

// facetKinds are the kinds that facets count, each with its fields.
var facetKinds = []struct {
	name string
	in   uint8
}{
	{"prompt", 1<<inPrompt | 1<<oftenPrompted}, {"answer", 1<<inAnswer | 1<<oftenAnswered}, {"tool", 1 << inTool},
	{"result", 1 << inResult}, {"title", 1 << inTitle}, {"other", 1 << inOther},
}

// lengths is how much a word counts for the length of a turn, in sixteenths, by its field.
var lengths = [fields]int64{1, 1, 8, 16, 16, 64, 64, 0}

const (
	// turnKind is the bit of doc.Kinds that turns have.
	turnKind = 1 << 31
	// toolBytes is how much of a tool's input counts as that: the rest is mostly a file.
	toolBytes = 400
	// turnParts is added to the part of a page that is about turns.
	turnParts = 2
)

func keyOf(t term, s field) key { return key(t)<<fieldBits | key(s) }

// ofStreams is the bit of keys that say which turns a stream has, ofHistory that of prompts of a history among these.
// Keys of words are lower.
const ofStreams, ofHistory key = 1 << 62, 1 << 61

// streamKey is the key of a stream's turns of a kind: of what session a turn is, is known before the turn is read.
func streamKey(id int64, kind string) key {
	if kind == server.HistoryKind {
		return ofStreams | ofHistory | key(id)
	}
	return ofStreams | key(id)
}

// streamOf returns the stream of a key.
func streamOf(k key) int64 { return int64(k &^ (ofStreams | ofHistory)) }

// turns collects turns of derivations.
type turns struct {
	b    builder
	seen map[term]uint8 // words of the newest turn's prompts and answers
}

// add adds the next text of a derivation.
func (x *turns) add(d *server.Derivation, t *server.Text, at line) {
	s, ok := fieldOf(t.Kind)
	if !ok {
		return
	}
	last := x.b.Last()
	if last == nil || last.Stream != d.Task.Stream || last.Epoch != d.Position.Epoch || last.Generation != t.Generation ||
		last.Turn != t.Turn {
		x.b.Begin(doc{Stream: d.Task.Stream, Epoch: d.Position.Epoch, Generation: t.Generation, Turn: t.Turn,
			Kinds: turnKind, Lines: []line{at}})
		last = x.b.Last()
		x.b.add(streamKey(d.Task.Stream, t.Kind))
		x.seen = map[term]uint8{}
	}
	last.Lines = turnLines(last.Lines, at, s >= inAnswer)
	last.Kinds |= bitsOf([]string{t.Kind})
	if s == inTool && len(t.Text) > toolBytes {
		last.Size += x.text(t.Text[:toolBytes], s)
		s, t = inResult, &server.Text{Text: t.Text[toolBytes:]}
	}
	last.Size += x.text(t.Text, s)
}

// text adds the words of a text: what they count for the length.
func (x *turns) text(text string, s field) (size int64) {
	eachWord(text, func(_ []byte, t term) {
		size += lengths[s]
		x.b.add(keyOf(t, s))
		if s == inAnswer || s == inPrompt {
			if x.seen[t]>>s&1 == 1 {
				x.b.add(keyOf(t, s+1))
			}
			x.seen[t] |= 1 << s
		}
	})
	return size
}

// turnLines adds a line to those of a turn: the first, those with what people remember, and the last one.
func turnLines(lines []line, at line, good bool) []line {
	n := len(lines)
	switch {
	case lines[n-1].Index == at.Index:
		return lines
	case n > 1 && lines[n-1].Rest, n >= docLines:
		lines = lines[:n-1]
	}
	at.Rest = !good
	return append(lines, at)
}

// joinTurn adds a later part of the same turn.
func (d *doc) joinTurn(b *doc) {
	d.Kinds |= b.Kinds
	d.Size += b.Size
	d.Lines = slices.Clone(d.Lines)
	for _, l := range b.Lines {
		d.Lines = turnLines(d.Lines, l, !l.Rest)
	}
}

// sameTurn reports whether b is a part of the turn d.
func (d *doc) sameTurn(b *doc) bool {
	return d.Kinds&b.Kinds&turnKind != 0 && d.Turn == b.Turn && d.Round == b.Round && d.Stream == b.Stream &&
		d.Epoch == b.Epoch && d.Generation == b.Generation
}
