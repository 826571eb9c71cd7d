package search

import (
	"slices"

	"github.com/ccship/ccship/server"
)

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
