package session

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// chain is the hash over a conversation's records, and what it was after each of the last ones, so that a way back
// finds it again.
type hashChain struct {
	sum   [8]byte
	links []chainLink // ascending by line
}

type chainLink struct {
	line int64
	sum  [8]byte
}

// maxLinks is how many links are kept at most; when there are more, the older half goes.
const maxLinks = 1024

func (c *hashChain) hash() string { return hex.EncodeToString(c.sum[:]) }

// add takes an event's record, once for all of its events. A prompt that only the queue has seen has no record: it
// counts with its text.
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

// restart begins anew with a compaction's record. The links stay: a way back may lead across it.
func (c *hashChain) restart(e *Event) {
	c.sum = [8]byte{}
	c.append(e.Line, e.UUID)
}

// cut goes back to where a rewind went.
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
		c.append(max(r.ToLine, 0), r.To) // further back than is known
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
