package session

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// hashChain is the hash over a conversation's records. It keeps the hashes after the latest records, so that a rewind
// finds the earlier one again.
type hashChain struct {
	sum   [8]byte
	links []chainLink // ascending by line
}

type chainLink struct {
	line int64
	sum  [8]byte
}

// maxLinks is the number of links kept; beyond it, the older half is dropped.
const maxLinks = 1024

func (c *hashChain) hash() string { return hex.EncodeToString(c.sum[:]) }

// add adds an event's record, once for all its events. A prompt known only from the queue has no record: its text is
// hashed instead.
func (c *hashChain) add(e *Event) {
	line := e.Line
	if n := len(c.links); n > 0 {
		if last := c.links[n-1].line; last == line && e.UUID != "" {
			return
		} else if line < last {
			line = last
		}
	}
	name := e.UUID
	if name == "" {
		name = "text:" + e.Text
	}
	c.append(line, name)
}

func (c *hashChain) append(line int64, name string) {
	h := sha256.Sum256(append(c.sum[:len(c.sum):len(c.sum)], name...))
	copy(c.sum[:], h[:])
	if len(c.links) == maxLinks {
		c.links = append(c.links[:0], c.links[maxLinks/2:]...)
	}
	c.links = append(c.links, chainLink{line, c.sum})
}

// restart starts again with a compaction's record. The links stay: a rewind may cross the compaction.
func (c *hashChain) restart(e *Event) {
	c.sum = [8]byte{}
	c.append(e.Line, e.UUID)
}

// cut returns to where a rewind went.
func (c *hashChain) cut(r *Rewind) {
	n := len(c.links)
	for n > 0 && c.links[n-1].line > r.ToLine {
		n--
	}
	c.links = c.links[:n]
	c.sum = [8]byte{}
	switch {
	case n > 0:
		c.sum = c.links[n-1].sum
	case r.To != "":
		c.append(max(r.ToLine, 0), r.To) // further back than the links reach
	}
}

func (c *hashChain) layout(k *codec) {
	sum := func(s *[8]byte) {
		n := binary.LittleEndian.Uint64(s[:])
		k.fixed(&n)
		binary.LittleEndian.PutUint64(s[:], n)
	}
	sum(&c.sum)
	var before int64
	list(k, &c.links, maxLinks, func(l *chainLink) {
		step := l.line - before
		k.int(&step)
		l.line = before + step
		before = l.line
		sum(&l.sum)
	})
}
