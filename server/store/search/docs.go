package search

import "math"

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
