package redact

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"unicode/utf8"
)

const (
	// segment is how many bytes of a file are masked at once. A file that is a little longer is one segment.
	segment = 1 << 20
	// margin is how many bytes on either side of a segment are searched with it, so that a secret across its end is
	// found from both sides. It is longer than any secret.
	margin = 64 << 10
	// sniffed is how many bytes decide whether a file is text.
	sniffed = 8000
)

// ReaderAt returns content with its secrets masked: text of a file of a given size, in bytes. What is binary stays as
// it is. Rules that are limited to some paths apply to path. The result is as long as content, the same whatever is
// read of it, and not safe for concurrent use. A nil Masker returns content.
func (m *Masker) ReaderAt(path string, content io.ReaderAt, size int64) io.ReaderAt {
	if m == nil {
		return content
	}
	b := make([]byte, sniffed)
	n, _ := content.ReadAt(b, 0) // an error is met again by the reader
	o, isText := kind(b[:n])
	if !isText {
		return content
	}
	return &reader{masker: m, path: path, order: o, content: content, size: size, at: -1}
}

// File masks a file's whole content as ReaderAt does.
func (m *Masker) File(path string, content []byte) ([]byte, []Range) {
	o, isText := kind(content[:min(len(content), sniffed)])
	if m == nil || !isText {
		return content, nil
	}
	return m.document(path, o, content, len(content) > segment+margin)
}

// kind returns how a file's text is encoded that begins with b; false: it is no text, as it begins with a zero byte,
// with what is no UTF-8, and with what is no UTF-16.
func kind(b []byte) (o order, isText bool) {
	if bytes.IndexByte(b, 0) < 0 && !bytes.HasPrefix(b, []byte{0xff, 0xfe}) && !bytes.HasPrefix(b, []byte{0xfe, 0xff}) {
		return narrow, true
	}
	if o, _ := wideOrder(b, 0); o != narrow {
		return o, true
	}
	return narrow, !isBinary(b)
}

// isBinary reports whether b, the beginning of a file, is no text: it has a zero byte, and is no UTF-8.
func isBinary(b []byte) bool {
	if bytes.IndexByte(b, 0) < 0 {
		return false
	}
	if len(b) == sniffed { // the last character may be cut off
		b = b[:len(b)-utf8.UTFMax]
		for len(b) > 0 && !utf8.RuneStart(b[len(b)-1]) {
			b = b[:len(b)-1]
		}
		b = b[:max(0, len(b)-1)]
	}
	return !utf8.Valid(b)
}

// reader masks a file segment by segment.
type reader struct {
	masker  *Masker
	path    string
	order   order
	content io.ReaderAt
	size    int64

	at     int64  // where masked starts; -1: nothing is masked yet
	masked []byte // the segment that was asked for last
}

// ReadAt implements io.ReaderAt.
func (r *reader) ReadAt(p []byte, offset int64) (n int, err error) {
	for n < len(p) {
		at := offset + int64(n)
		if at >= r.size {
			return n, io.EOF
		}
		if err := r.load(r.segmentOf(at)); err != nil {
			return n, err
		}
		if at-r.at >= int64(len(r.masked)) {
			return n, io.EOF // the file has become shorter
		}
		n += copy(p[n:], r.masked[at-r.at:])
	}
	return n, nil
}

// segmentOf returns where the segment starts that an offset lies in.
func (r *reader) segmentOf(at int64) int64 {
	if r.size <= segment+margin {
		return 0
	}
	return at - at%segment
}

// load masks the segment that starts at an offset, unless it is loaded.
func (r *reader) load(at int64) error {
	if at == r.at {
		return nil
	}
	length := int64(segment)
	if r.size <= segment+margin {
		length = r.size
	}
	from, to := max(0, at-margin), min(r.size, at+length+margin)
	b := make([]byte, to-from)
	n, err := r.content.ReadAt(b, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	masked, _ := r.masker.document(r.path, r.order, b[:n], r.size > segment+margin)
	core := masked[min(at-from, int64(n)):]
	r.at, r.masked = at, core[:min(length, int64(len(core)))]
	return nil
}

// known are the secrets that a search has found, to be found again wherever else the text has them.
type known struct {
	values map[uint64][]value // by their first bytes
	bits   [1 << 10]uint64    // by the hash of these
}

// value is a secret without escapes, and the rule that found it.
type value struct {
	text, rule string
}

const (
	leastKnown  = 8  // bytes of a secret that is looked for again
	longKnown   = 16 // bytes from which one may be part of a word
	mostSimilar = 32 // secrets that begin alike
)

// newKnown collects the secrets of some ranges; nil if none can be distinguished from other words.
func newKnown(text []byte, ranges []Range) *known {
	var k *known
	for _, r := range ranges {
		v := value{string(plain(r.order.decoded(text[r.Start:r.End]))), r.Rule}
		if len(v.text) < leastKnown || distinct([]byte(v.text)) < leastKnown/2 {
			continue
		}
		if k == nil {
			k = &known{values: map[uint64][]value{}}
		}
		first := binary.LittleEndian.Uint64([]byte(v.text))
		all := k.values[first]
		if len(all) < mostSimilar && !slices.ContainsFunc(all, func(o value) bool { return o.text == v.text }) {
			k.values[first] = append(all, v)
			h := hash16(first)
			k.bits[h/64] |= 1 << (h % 64)
		}
	}
	return k
}

func hash16(word uint64) uint64 { return word * 0x9e3779b97f4a7c15 >> 48 }

// find calls found with every position of a secret in a text.
func (k *known) find(text []byte, found func(rule string, from, to int)) {
	for i := 0; i+leastKnown <= len(text); i++ {
		first := binary.LittleEndian.Uint64(text[i:])
		if h := hash16(first); k.bits[h/64]>>(h%64)&1 == 0 {
			continue
		}
		for _, v := range k.values[first] {
			end := i + len(v.text)
			if end <= len(text) && string(text[i:end]) == v.text && (len(v.text) >= longKnown ||
				startsWord(text, i) && (end == len(text) || !isAlnum(text[end]))) {
				found(v.rule, i, end)
			}
		}
	}
}
