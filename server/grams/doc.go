// Package grams is an index for searching parts of texts, as bytes: it knows neither a database nor what texts are.
//
// Texts are cut into docs, the texts of some consecutive lines. A segment says of each run of three characters, a gram,
// which docs have it. So a search reads the pages with the grams of what is looked for, and gets candidates: docs that
// may hold it. Whoever asks reads their lines and decides. Segments are immutable; several become one by Merge.
//
// Docs are numbered from the one with the oldest newest line on, so candidates come newest first from the end.
package grams

import "math"

// Doc is the texts of lines of one generation.
type Doc struct {
	Stream, Epoch, Generation int64
	Round                     int64  // which derivation of the stream it is from
	Kinds                     uint32 // a bit for each kind of text in it
	Size                      int64  // bytes of its texts
	Lines                     []Line // ascending, at least one
	Carried                   []Carried
}

// Line is a line with a text, and its time in microseconds.
type Line struct{ Index, Time int64 }

// Carried is a text that its line alone does not tell.
type Carried struct {
	Line int64
	Kind uint32
	Text string
}

// First is the doc's first line.
func (d *Doc) First() int64 { return d.Lines[0].Index }

// Last is the doc's last line.
func (d *Doc) Last() int64 { return d.Lines[len(d.Lines)-1].Index }

// Newest is the time of the newest line.
func (d *Doc) Newest() int64 {
	at := int64(math.MinInt64)
	for _, l := range d.Lines {
		at = max(at, l.Time)
	}
	return at
}

// Oldest is the time of the oldest line.
func (d *Doc) Oldest() int64 {
	at := int64(math.MaxInt64)
	for _, l := range d.Lines {
		at = min(at, l.Time)
	}
	return at
}

const (
	// DocBytes is about how much text a doc has: more make a smaller index, and candidates that cost more to read.
	DocBytes = 4 << 10
	// docLines bounds a doc, for the sake of lines between them that have no text.
	docLines = 64
	// docGap is how many lines without texts may be within a doc.
	docGap = 16
)

// Room reports whether a line with so many bytes of text may join a doc as its next one.
func (d *Doc) Room(line, size int64) bool {
	return d.Size+size <= DocBytes && line > d.Last() && line-d.Last() <= docGap &&
		len(d.Lines) < docLines
}

// follows reports whether b may become a part of d.
func (d *Doc) follows(b *Doc) bool {
	return d.Stream == b.Stream && d.Epoch == b.Epoch && d.Generation == b.Generation && d.Round == b.Round &&
		len(d.Lines)+len(b.Lines) <= docLines && d.Room(b.First(), b.Size)
}

// Key is a gram.
type Key = uint64

// runeBits are those of a character. Behind the end of a text stand two zeros, so that each character begins a gram.
const runeBits = 21

// keyMask is the bits of a key: those of three characters, in the order of what they pack.
const keyMask = 1<<(3*runeBits) - 1
