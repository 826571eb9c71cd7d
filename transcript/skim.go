package transcript

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math/bits"
	"strconv"
)

// The skim functions walk JSON that Scan has accepted. They only look for ends, which makes them several times as fast
// as Scan. On other input their results are meaningless, but they stay inside the slice and terminate.

// skimString returns the index behind the string whose contents begin at b[i]. It checks short strings, which most are,
// in words of eight bytes, and leaves long ones to bytes.IndexByte.
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

// skimLong is skimString from a byte that does not follow a backslash.
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

// ends marks the bytes that may follow a number, true, false or null.
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

// walker iterates over the members of an object or the elements of an array. The zero value has none.
type walker struct {
	b []byte
	i int
}

// walkerOf starts a walk over value; over nothing if it is neither an object nor an array.
func walkerOf(value []byte) walker {
	if len(value) < 2 || value[0] != '{' && value[0] != '[' {
		return walker{}
	}
	return walker{value, 1}
}

// member returns the next member of an object. key is still escaped; value is as written, without space around it.
func (w *walker) member() (key, value []byte, ok bool) {
	if key, ok = w.key(); !ok {
		return nil, nil, false
	}
	value = w.value(w.i)
	return key, value, len(value) > 0
}

// key returns the name of the next member; its value begins at w.i.
func (w *walker) key() (key []byte, ok bool) {
	w.skipComma()
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

func (w *walker) value(start int) []byte {
	w.i = skimValue(w.b, start)
	return w.b[start:max(start, w.i)]
}

// enter moves into the object or array at w.i and returns where it began, for leave, which moves behind it.
func (w *walker) enter() (start int) {
	w.i++
	return w.i - 1
}

func (w *walker) leave(start int) {
	if w.i < len(w.b) && (w.b[w.i] == '}' || w.b[w.i] == ']') {
		w.i++
		return
	}
	w.i = skimNested(w.b, start)
}

// skipComma skips white space and the comma.
func (w *walker) skipComma() {
	if w.i < len(w.b) && w.b[w.i] == ',' {
		w.i++
	}
	w.i = skipSpace(w.b, w.i)
	if w.i < len(w.b) && w.b[w.i] == ',' {
		w.i = skipSpace(w.b, w.i+1)
	}
}

// stringContents returns what is between the quotes of a string, still escaped; nil if value is not a string.
func stringContents(value []byte) []byte {
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		return nil
	}
	return value[1 : len(value)-1]
}

// text decodes a string value; "" if it is not one.
func text(value []byte) string { return Unquote(stringContents(value)) }

func isTrue(value []byte) bool { return string(value) == "true" }

// integer parses a number, which some gateways write as a string, and drops its fraction. 0 if value is not a number,
// or is out of the range of tokens and milliseconds.
func integer(value []byte) int64 {
	digits, negative := bytes.CutPrefix(bytes.Trim(value, `"`), []byte("-"))
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

// field returns a member of an object, nil if there is none of that name.
func field(object []byte, name string) []byte {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	w := walkerOf(object)
	for key, value, ok := w.member(); ok; key, value, ok = w.member() {
		if string(key) == name {
			return value
		}
	}
	return nil
}

// StringField returns the string member name of a JSON object, decoded; "" if there is none. object must be part of a
// line that Scan accepted, otherwise the result is meaningless.
func StringField(object []byte, name string) string { return text(field(object, name)) }

// Member returns the member name of a JSON object as written, nil if there is none. object must be as for StringField.
func Member(object []byte, name string) []byte { return field(object, name) }

// Elements returns the elements of a JSON array as written; none of anything else. array must be as for StringField.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(array) == 0 || array[0] != '[' {
			return
		}
		w := walkerOf(array)
		for w.skipComma(); w.i < len(w.b) && w.b[w.i] != ']'; w.skipComma() {
			if value := w.value(w.i); len(value) == 0 || !yield(value) {
				return
			}
		}
	}
}

// StringOf decodes a JSON string; "" if value is none. value must be as for StringField.
func StringOf(value []byte) string { return text(value) }

// NumberField returns the number member name of a JSON object; 0 if there is none. object must be as for StringField.
func NumberField(object []byte, name string) float64 {
	n, err := strconv.ParseFloat(string(bytes.Trim(field(object, name), `"`)), 64)
	if err != nil {
		return 0
	}
	return n
}

// BoolField reports whether the member name of a JSON object is true.
func BoolField(object []byte, name string) bool { return isTrue(field(object, name)) }
