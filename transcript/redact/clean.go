package redact

import (
	"hash/maphash"
	"slices"
)

// clean remembers the last strings that nothing was found in: transcripts have results of tools twice in a line, and
// files as often as they are read.
type clean struct {
	hashes [64]uint64
	next   int
}

// leastClean is the length of the shortest string that is remembered, in bytes.
const leastClean = 256

var cleanSeed = maphash.MakeSeed()

// neutral are the members whose names are no context for their values, as transcripts have them. The rules and the
// allow-lists of a person may say otherwise.
var neutral = []string{"content", "text", "stdout", "stderr", "originalFile", "result"}

// hash returns the hash of a walker's string and of its name as far as it is context; 0 for a short string. own: there
// are rules or allow-lists of a person.
func (c *clean) hash(w *walker, own bool) uint64 {
	if w.end-w.start < leastClean {
		return 0
	}
	name := w.name
	if !own && slices.Contains(neutral, name) {
		name = neutral[0]
	}
	var h maphash.Hash
	h.SetSeed(cleanSeed)
	h.WriteString(name)
	h.WriteByte('"')
	h.Write(w.line[w.start:w.end])
	return max(1, h.Sum64())
}

func (c *clean) has(hash uint64) bool { return hash != 0 && slices.Contains(c.hashes[:], hash) }

func (c *clean) add(hash uint64) {
	c.hashes[c.next] = hash
	c.next = (c.next + 1) % len(c.hashes)
}
