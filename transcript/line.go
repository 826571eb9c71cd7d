package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// Shape classifies a line.
type Shape uint8

const (
	// Object is exactly one JSON object, possibly with white space around it.
	Object Shape = iota
	// Blank is empty or only white space.
	Blank
	// Malformed is anything else: truncated, concatenated or NUL-damaged records, invalid UTF-8, a byte order mark, an
	// array, a bare value, an object nested deeper than MaxDepth.
	Malformed
	// Reserved is an object that claims to be one of the wire's own entries (AppendOpaque, AppendOversize). It travels
	// as an opaque line, otherwise the receiver would take it for one.
	Reserved
)

// MaxDepth is how deep the objects and arrays of an Object may be nested, including the record itself. encoding/json
// stops at 10 000, and a record travels inside two more levels: without the margin, one such line would make the server
// reject the whole request.
const MaxDepth = 9990

// Types of the wire's own entries.
const (
	opaqueType   = "ccship.opaque"
	oversizeType = "ccship.oversize"
)

// Line is the result of Scan. Its byte slices point into the scanned line and are still escaped (see Unquote).
type Line struct {
	Shape Shape
	// Start and End delimit the object: line[Start:End] is "{…}". The rest of the line is white space.
	Start, End int
	// Type, Cwd and SessionID are the contents of the first top-level string members "type", "cwd" and "sessionId"; nil
	// if absent.
	Type, Cwd, SessionID []byte
	HasLineIndex         bool   // has a top-level member "line_index"
	Empty                bool   // an object without members
	lineIndex            []byte // the value of the first "line_index", as written
	spans                [4]span
}

// IsObject reports whether the line is one JSON object, reserved or not.
func (l Line) IsObject() bool { return l.Shape == Object || l.Shape == Reserved }

// span is the position of one of the first long values of a record, so that Parse need not search for its end again.
type span struct{ start, end int }

// minSpan is the length from which remembering a value's end pays off.
const minSpan = 256

// Scan scans one line, without its newline. It accepts valid UTF-8 that conforms to RFC 8259, and picks up the members
// that delivery needs on the way. It does not allocate unless the line is nested more than 64 deep.
func Scan(line []byte) Line {
	l := Line{Start: skipSpace(line, 0)}
	if l.Start == len(line) {
		return Line{Shape: Blank}
	}
	l.End = l.object(line, l.Start)
	if l.End < 0 || skipSpace(line, l.End) != len(line) {
		return Line{Shape: Malformed}
	}
	if bytes.HasPrefix(l.Type, []byte("ccship.")) && (string(l.Type) == opaqueType || string(l.Type) == oversizeType) {
		l.Shape = Reserved
	}
	return l
}

// object scans the object at b[i] and picks up its members. It returns the index behind it, or ^i of the first invalid
// byte.
func (l *Line) object(b []byte, i int) int {
	if i == len(b) || b[i] != '{' {
		return ^i
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		l.Empty = true
		return i + 1
	}
	for {
		key := i + 1
		value := skipKey(b, i)
		if value < 0 {
			return value
		}
		end := skipValue(b, value)
		if end < 0 {
			return end
		}
		if end-value > minSpan {
			l.remember(value, end)
		}
		l.pick(keyAt(b, key), b[value:end])
		i = skipSpace(b, end)
		if i == len(b) {
			return ^i
		}
		switch b[i] {
		case '}':
			return i + 1
		case ',':
			i = skipSpace(b, i+1)
		default:
			return ^i
		}
	}
}

// pick stores a member if it is one that delivery needs and the first of its name.
func (l *Line) pick(key, value []byte) {
	switch string(key) {
	case "type":
		keepString(&l.Type, value)
	case "cwd":
		keepString(&l.Cwd, value)
	case "sessionId":
		keepString(&l.SessionID, value)
	case "line_index":
		if !l.HasLineIndex {
			l.HasLineIndex, l.lineIndex = true, value
		}
	}
}

func (l *Line) remember(start, end int) {
	for i := range l.spans {
		if l.spans[i].end == 0 {
			l.spans[i] = span{start, end}
			return
		}
	}
}

func keepString(dst *[]byte, value []byte) {
	if *dst == nil && value[0] == '"' {
		*dst = value[1 : len(value)-1]
	}
}

// longestKey is the length of the longest key that delivery needs, with every letter written as \uXXXX.
const longestKey = 6 * len("line_index")

// keyAt returns the key that starts at b[i]; it is known to be complete. Short keys are unescaped: {"\u0063wd":…} also
// names a working directory, and the project there may have opted out. Longer keys are not needed: nil.
func keyAt(b []byte, i int) []byte {
	window := b[i:min(len(b), i+longestKey+1)]
	n := bytes.IndexByte(window, '"')
	if slash := bytes.IndexByte(window, '\\'); slash >= 0 && (n < 0 || slash < n) {
		end := skipString(b, i) - 1
		if end-i > longestKey {
			return nil
		}
		return []byte(Unquote(b[i:end]))
	}
	if n < 0 {
		return nil
	}
	return window[:n]
}

// Layout describes where the lines of a file are: what is between them, and what is known of those that
// were too long. Client and server make it of the same lines in the same order. The zero Layout is of no line; a copy
// goes on by itself.
type Layout struct {
	next int64
	sum  [sha256.Size]byte // over what is no line; zero: there is nothing else so far
}

// Line adds a line. Indices ascend.
func (l *Layout) Line(index int64) {
	l.gap(index)
	l.next = index + 1
}

// Oversize adds a line of which only this is held.
func (l *Layout) Oversize(index int64, o Oversize) {
	l.gap(index)
	l.next = index + 1
	l.add('o', o.SHA256[:], index, o.Offset, o.Length)
}

// Next returns the index behind the last line.
func (l *Layout) Next() int64 { return l.next }

// Sum returns the digest of a file that ends before line end, at Next or later: lines is the sha256 over each line and
// a newline. If every line is there, it is that.
func (l Layout) Sum(end int64, lines []byte) []byte {
	if l.gap(end); l.sum == [sha256.Size]byte{} {
		return lines
	}
	l.add('l', lines)
	return l.sum[:]
}

// gap adds the lines that are missing before one.
func (l *Layout) gap(before int64) {
	if l.next < before {
		l.add('g', nil, l.next, before)
	}
}

func (l *Layout) add(kind byte, text []byte, numbers ...int64) {
	b := append(l.sum[:len(l.sum):len(l.sum)], kind)
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	l.sum = sha256.Sum256(append(b, text...))
}

// Records returns the records of a line: one, those that Recover finds in a Malformed one, or none.
func Records(line []byte) []Record {
	l := Scan(line)
	if l.IsObject() {
		return []Record{ParseScanned(line, l)}
	}
	var out []Record
	if l.Shape == Malformed {
		for _, object := range Recover(line) {
			out = append(out, Parse(object))
		}
	}
	return out
}

// Recover finds the records inside a Malformed line: several concatenated records, one truncated by a crash with the
// next behind it, runs of NULs between or inside them, UTF-16, another encoding, a list of records or a line of one.
// Truncated records are lost. The objects are returned in order and point into line, unless it is no UTF-8 or has NULs.
//
// An object counts as a record if it stands where a record may begin (at the start of the line, or after a record), or
// if the end of the line or another record follows it. An object inside the remains of a truncated record is followed
// by the rest of that record instead.
func Recover(line []byte) [][]byte {
	if bytes.IndexByte(line, 0) >= 0 {
		line = bytes.ReplaceAll(narrowed(line), []byte{0}, nil)
	}
	line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(line) {
		if valid := bytes.ToValidUTF8(line, []byte("\uFFFD")); Scan(valid).IsObject() {
			line = valid
		}
	}
	r := recovery{line: line, budget: 16*len(line) + 1<<16}
	if i := skipSpace(line, 0); i < len(line) && line[i] == '[' {
		i = skipSpace(line, i+1)
		r.list, r.listed = i < len(line) && line[i] == '{', i
	}
	for r.at >= 0 && r.budget > 0 {
		r.next()
	}
	return r.found
}

// narrowed returns a line of a UTF-16 file in UTF-8, without byte order mark. Such a line has half of a newline at one
// end. Of the four ways to read it, the one that makes it a record is meant, or else that with the most ASCII; any
// other line is returned as it is.
func narrowed(line []byte) []byte {
	best, most := line, len(line)/4
	for way := range 4 {
		from, low := way/2, way%2 // the low byte of a unit comes first or second
		units, ascii := make([]uint16, 0, len(line)/2), 0
		for i := from; i+1 < len(line); i += 2 {
			unit := uint16(line[i+low]) | uint16(line[i+1-low])<<8
			if units = append(units, unit); unit > 0 && unit < utf8.RuneSelf {
				ascii++
			}
		}
		text := bytes.TrimPrefix([]byte(string(utf16.Decode(units))), []byte("\ufeff"))
		if Scan(text).IsObject() {
			return text
		}
		if ascii > most {
			best, most = text, ascii
		}
	}
	return best
}

// recovery is the state of a walk over a damaged line.
type recovery struct {
	line  []byte
	at    int  // where the next object may begin, -1 if nowhere
	clean bool // a record ended directly before at
	// list is set when the line begins as a list of objects, the first of which begins at listed.
	list   bool
	listed int
	found  [][]byte
	// budget is how many more bytes may be scanned. A line may contain many starts of records that never end, each of
	// which has to be tried; real damage never comes near the limit.
	budget int
}

// next tries the object that begins at or after r.at.
func (r *recovery) next() {
	start := skipSpace(r.line, r.at)
	clean := start < len(r.line) && r.line[start] == '{' && (r.clean || r.at == 0)
	if first := r.list && r.at == 0; first {
		start = r.listed
	} else if !clean {
		if start = recordStart(r.line, r.at); start < 0 {
			r.at = -1
			return
		}
	}
	var l Line
	end := l.object(r.line, start)
	if end < 0 {
		r.budget -= ^end - start
		// The next record broke the string, number or name in which the truncated one ended: it begins up to two bytes
		// before the invalid byte. If the line ended first, a value was expected there.
		r.at, r.clean = max(start+1, ^end-2), false
		if ^end == len(r.line) {
			r.at = start + 1
		}
		return
	}
	r.budget -= end - start
	after := r.behind(end)
	if clean || after == len(r.line) || r.line[after] == '{' {
		r.found = append(r.found, r.line[start:end])
		clean = true
	}
	r.at, r.clean = end, clean
	if clean {
		r.at = after
	}
}

// behind returns where the next record may begin behind an object: in a list, after a comma. A list ends with the line.
func (r *recovery) behind(end int) int {
	after := skipSpace(r.line, end)
	if !r.list || after == len(r.line) {
		return after
	}
	switch next := skipSpace(r.line, after+1); {
	case r.line[after] == ',', r.line[after] == ']' && next == len(r.line):
		return next
	}
	return after
}

// recordStart returns the index at or after i where a record may begin, -1 if none.
func recordStart(b []byte, i int) int {
	for i < len(b) {
		n := bytes.Index(b[i:], []byte(`{"`))
		if n < 0 {
			return -1
		}
		i += n
		if bytes.HasPrefix(b[i:], []byte(`{"type":`)) || bytes.HasPrefix(b[i:], []byte(`{"parentUuid":`)) {
			return i
		}
		i += 2
	}
	return -1
}
