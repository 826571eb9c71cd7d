package transcript

import "bytes"

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
