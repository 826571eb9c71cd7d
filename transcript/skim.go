package transcript

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// The skim functions walk JSON that Scan has accepted, so they look for ends only, several times as fast as Scan. On
// anything else they find nonsense, but they stay inside the slice and come to an end.

// skimString returns the index behind the string whose contents begin at b[i]. Short ones, which most are, are looked
// at in words of eight bytes; long ones are left to the system's search.
func skimString(b []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for near := i + 48; i < near && i+8 <= len(b); {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^ones*'"', x^ones*'\\'
		m := ((quote-ones)&^quote | (slash-ones)&^slash) & highs
		if m == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(m) >> 3
		if b[i] == '"' {
			return i + 1
		}
		i += 2
	}
	return skimLong(b, i)
}

// skimLong is skimString from a byte that no backslash stands before.
func skimLong(b []byte, i int) int {
	start := i
	for i < len(b) {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			break
		}
		i += n
		slashes := 0
		for k := i - 1; k >= start && b[k] == '\\'; k-- {
			slashes++
		}
		i++
		if slashes&1 == 0 {
			return i
		}
	}
	return len(b)
}

// skimValue returns the index behind the value at b[i].
func skimValue(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		return skimString(b, i+1)
	case '{', '[':
		return skimNested(b, i)
	}
	for i < len(b) && !ends[b[i]] {
		i++
	}
	return i
}

// ends marks what may follow a number, true, false or null.
var ends = [256]bool{',': true, '}': true, ']': true, ' ': true, '\t': true, '\r': true, '\n': true, '"': true}

// skimNested returns the index behind the object or array at b[i].
func skimNested(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skimString(b, i+1)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return len(b)
}

// walk goes over the members of an object, or the elements of an array. Its zero value has none.
type walk struct {
	b []byte
	i int
}

// within starts a walk over value; over none if that is neither object nor array.
func within(value []byte) walk {
	if len(value) < 2 || value[0] != '{' && value[0] != '[' {
		return walk{}
	}
	return walk{value, 1}
}

// member is the next member of an object. key is still escaped, value is as written, without space around it.
func (w *walk) member() (key, value []byte, ok bool) {
	if key, ok = w.key(); !ok {
		return nil, nil, false
	}
	value = w.take(w.i)
	return key, value, len(value) > 0
}

// key is the name of the next member; its value begins at w.i then.
func (w *walk) key() (key []byte, ok bool) {
	w.gap()
	if w.i >= len(w.b) || w.b[w.i] != '"' {
		return nil, false
	}
	start := w.i + 1
	w.i = skimString(w.b, start)
	key = w.b[start:max(start, w.i-1)]
	if w.i = skipSpace(w.b, w.i); w.i >= len(w.b) || w.b[w.i] != ':' {
		return nil, false
	}
	w.i = skipSpace(w.b, w.i+1)
	return key, true
}

func (w *walk) take(start int) []byte {
	w.i = skimValue(w.b, start)
	return w.b[start:max(start, w.i)]
}

// enter goes into the object or array at w.i, and leave behind it when all of it has been walked over. start is where
// it began.
func (w *walk) enter() (start int) {
	w.i++
	return w.i - 1
}

func (w *walk) leave(start int) {
	if w.i < len(w.b) && (w.b[w.i] == '}' || w.b[w.i] == ']') {
		w.i++
		return
	}
	w.i = skimNested(w.b, start)
}

// gap passes space and the comma.
func (w *walk) gap() {
	if w.i < len(w.b) && w.b[w.i] == ',' {
		w.i++
	}
	w.i = skipSpace(w.b, w.i)
	if w.i < len(w.b) && w.b[w.i] == ',' {
		w.i = skipSpace(w.b, w.i+1)
	}
}

// contents are what is between the quotes of a string, still escaped; nil if value is no string.
func contents(value []byte) []byte {
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		return nil
	}
	return value[1 : len(value)-1]
}

// text decodes a string value; "" if it is none.
func text(value []byte) string { return Unquote(contents(value)) }

func truth(value []byte) bool { return string(value) == "true" }

// whole reads a number; its fraction is cut off. 0 if value is none, or beyond what tokens and milliseconds come to.
func whole(value []byte) int64 {
	digits, negative := bytes.CutPrefix(value, []byte("-"))
	var n int64
	for i, c := range digits {
		if c-'0' > 9 {
			if c|0x20 == 'e' || c == '.' && bytes.ContainsAny(digits[i:], "eE") {
				return 0
			}
			break
		}
		if n = n*10 + int64(c-'0'); n > 1<<53 {
			return 0
		}
	}
	if negative {
		return -n
	}
	return n
}

// field is one member of an object, nil if it has none of that name.
func field(object []byte, name string) []byte {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	w := within(object)
	for key, value, ok := w.member(); ok; key, value, ok = w.member() {
		if string(key) == name {
			return value
		}
	}
	return nil
}

// StringField is a member of a JSON object that is a string, decoded; "" when object is none, or has no such string.
// object must be part of a line that Scan accepted.
func StringField(object []byte, name string) string { return text(field(object, name)) }

// BoolField reports whether a member of a JSON object is true.
func BoolField(object []byte, name string) bool { return truth(field(object, name)) }
