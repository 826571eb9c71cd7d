package tail

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
)

// Line is one line of a file as it is delivered.
type Line struct {
	Index, Offset int64
	Length        int64    // without the newline
	Newline       bool     // false only of a last line without one
	Oversize      bool     // longer than the cap: only its digest is delivered
	Raw           []byte   // without the newline, valid until the next line; nil of an oversize one, unless they are kept
	Whole         []byte   // Raw with the newline, if there is one
	SHA256        [32]byte // of an oversize one, without a newline
	Hash          [32]byte // of an oversize one, with a newline
}

// LineReader reads a file line by line, by the rule by which it is delivered.
type LineReader struct {
	Cap  int64 // of a line without its newline, in bytes
	Keep bool  // keep the bytes of oversize lines

	r             *bufio.Reader
	index, offset int64
	long          []byte // of a line that does not fit into the buffer
}

// NewLineReader reads lines of up to limit bytes. size is about how many bytes there are to read.
func NewLineReader(r io.Reader, limit, size int64) *LineReader {
	const most = 256 << 10 // most files are small
	return &LineReader{Cap: limit, r: bufio.NewReaderSize(r, int(min(size+1, most)))}
}

// Next returns the next line, or io.EOF behind the last.
func (r *LineReader) Next() (Line, error) {
	l := Line{Index: r.index, Offset: r.offset}
	r.long = r.long[:0]
	var sum hash.Hash // nil up to the cap
	for more := true; more; {
		part, err := r.r.ReadSlice('\n')
		more = errors.Is(err, bufio.ErrBufferFull)
		whole := part
		switch {
		case err == nil:
			l.Newline, part = true, part[:len(part)-1]
		case !more && (!errors.Is(err, io.EOF) || l.Length+int64(len(part)) == 0):
			return Line{}, err
		}
		l.Length += int64(len(part))
		if overCap(l.Length, r.Cap) && sum == nil {
			sum = sha256.New()
			sum.Write(r.long)
		}
		if sum != nil {
			sum.Write(part)
		}
		switch {
		case sum != nil && !r.Keep:
		case !more && len(r.long) == 0:
			l.Whole = whole // all of it is in the buffer
		default:
			r.long = append(r.long, whole...)
			l.Whole = r.long
		}
	}
	r.index++
	r.offset += l.Length
	if l.Newline {
		r.offset++
	}
	if sum != nil {
		if l.Oversize = true; !r.Keep {
			l.Whole = nil
		}
		sum.Sum(l.SHA256[:0])
		sum.Write([]byte{'\n'})
		sum.Sum(l.Hash[:0])
	}
	l.Raw = l.Whole[:min(l.Length, int64(len(l.Whole)))]
	return l, nil
}

// overCap reports whether a line of so many bytes, without its newline, is longer than the cap.
func overCap(length, limit int64) bool { return length > limit }
