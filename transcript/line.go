package transcript

import "bytes"

// Shape says what a line is.
type Shape uint8

const (
	// Object is exactly one JSON object, white space around it allowed.
	Object Shape = iota
	// Blank is nothing but white space, or nothing.
	Blank
	// Malformed is everything else: cut, glued or NUL-damaged records, invalid UTF-8, a byte order mark, an array,
	// a bare value, an object nested deeper than MaxDepth.
	Malformed
	// Reserved is an object that says of itself it is one of the wire's own entries (AppendOpaque, AppendOversize).
	// It travels as an opaque line, else the other end would take it for one.
	Reserved
)

// MaxDepth is how deep the objects and arrays of an Object may be nested, the record itself counted. Decoders stop at
// 10 000 (encoding/json), and a record travels inside two more levels: without the difference one such line would
// have its whole request refused.
const MaxDepth = 9990

// The types of the wire's own entries.
const (
	opaqueType   = "ccship.opaque"
	oversizeType = "ccship.oversize"
)

// Line is what Scan found. Its byte slices point into the scanned line and are still escaped (Unquote).
type Line struct {
	Shape Shape
	// Start and End are the braces of the object: line[Start:End] is "{…}". What lies outside is the line's edges.
	Start, End int
	// Type, Cwd and SessionID are the contents of the first top-level string members "type", "cwd" and "sessionId";
	// nil when there is none.
	Type, Cwd, SessionID []byte
	HasLineIndex         bool   // has a top-level member "line_index" of its own
	Empty                bool   // an object without members
	lineIndex            []byte // the value of the first "line_index", as written
	far                  [4]span
}

// span is where one of the first long values of a record begins and ends, so that Parse need not look for it again.
type span struct{ start, end int }

// farAway is from what length on a value's end is worth remembering.
const farAway = 256

// Scan reads one line, without its newline. It accepts what RFC 8259 accepts, in valid UTF-8, and picks the members
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

// object reads the object at b[i] and picks its members. It returns the index behind it, or ^i of the byte that
// cannot be.
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
		if end-value > farAway {
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

// pick keeps a member if it is one of ours and the first of its name.
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
	for i := range l.far {
		if l.far[i].end == 0 {
			l.far[i] = span{start, end}
			return
		}
	}
}

func keepString(dst *[]byte, value []byte) {
	if *dst == nil && value[0] == '"' {
		*dst = value[1 : len(value)-1]
	}
}

// longestKey is how long a key of ours is when every letter of it is written as \uXXXX.
const longestKey = 6 * len("line_index")

// keyAt is the name that starts at b[i], of a key known to be whole. An escaped short one is decoded: {"\u0063wd":…}
// names a working directory too, and the project in it may have opted out. Longer ones are none of ours: nil.
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
