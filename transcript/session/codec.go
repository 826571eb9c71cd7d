package session

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/transcript"
)

// ErrState is wrapped by every error of UnmarshalBinary: the bytes are not a state of this version. Derive again from
// the first line.
var ErrState = errors.New("not a state of this version")

// codec reads or writes a state: one layout function serves both directions.
type codec struct {
	b       []byte
	reading bool
	bad     bool
}

func (c *codec) fail() { c.bad, c.b = true, nil }

func (c *codec) uint(v *uint64) {
	if !c.reading {
		c.b = binary.AppendUvarint(c.b, *v)
		return
	}
	n, size := binary.Uvarint(c.b)
	if size <= 0 {
		c.fail()
		return
	}
	*v, c.b = n, c.b[size:]
}

func (c *codec) int(v *int64) {
	n := uint64(*v)<<1 ^ uint64(*v>>63)
	c.uint(&n)
	*v = int64(n>>1) ^ -int64(n&1)
}

func (c *codec) ints(v ...*int64) {
	for _, n := range v {
		c.int(n)
	}
}

func (c *codec) uint32(v *uint32) {
	n := uint64(*v)
	c.uint(&n)
	*v = uint32(n)
}

func (c *codec) byte(v *uint8) {
	n := uint64(*v)
	c.uint(&n)
	*v = uint8(n)
}

func (c *codec) bools(v ...*bool) {
	for _, b := range v {
		var n uint64
		if *b {
			n = 1
		}
		c.uint(&n)
		*b = n == 1
	}
}

// flag writes a flag, or reads one that was written: whether optional fields follow.
func (c *codec) flag(v bool) bool {
	c.bools(&v)
	return v
}

// fixed is a hash of eight bytes.
func (c *codec) fixed(v *uint64) {
	if !c.reading {
		c.b = binary.LittleEndian.AppendUint64(c.b, *v)
		return
	}
	if len(c.b) < 8 {
		c.fail()
		return
	}
	*v, c.b = binary.LittleEndian.Uint64(c.b), c.b[8:]
}

func (c *codec) text(v ...*string) {
	for _, s := range v {
		n := uint64(len(*s))
		c.uint(&n)
		switch {
		case !c.reading:
			c.b = append(c.b, *s...)
		case n > uint64(len(c.b)):
			c.fail()
		default:
			*s, c.b = string(c.b[:n]), c.b[n:]
		}
	}
}

func (c *codec) time(v ...*time.Time) {
	for _, t := range v {
		var n int64
		if !t.IsZero() {
			n = t.UnixMicro()
		}
		c.int(&n)
		if c.reading {
			*t = time.Time{}
			if n != 0 {
				*t = transcript.PlausibleTime(time.UnixMicro(n).UTC()) // states of older builds hold any time
			}
		}
	}
}

// list is a list's length and its elements: at most bound of them, each at least one byte.
func list[T any](c *codec, v *[]T, bound int, each func(*T)) {
	n := uint64(len(*v))
	c.uint(&n)
	if c.reading {
		if n > uint64(bound) || n > uint64(len(c.b)) {
			c.fail()
			return
		}
		if *v = nil; n > 0 {
			*v = make([]T, n)
		}
	}
	for i := range *v {
		each(&(*v)[i])
	}
}

// decode reads all of data, or fails.
func decode(what string, data []byte, version uint64, layout func(*codec)) error {
	c := codec{b: data, reading: true}
	v := version
	c.uint(&v)
	if c.bad || v != version {
		return fmt.Errorf("read %s: %w", what, ErrState)
	}
	layout(&c)
	if c.bad || len(c.b) > 0 {
		return fmt.Errorf("read %s: %w", what, ErrState)
	}
	return nil
}

func encode(version uint64, layout func(*codec)) []byte {
	c := codec{b: make([]byte, 0, 1024)}
	c.uint(&version)
	layout(&c)
	return c.b
}

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
