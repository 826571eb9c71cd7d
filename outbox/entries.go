package outbox

import (
	"bytes"
	"errors"
)

var errNotEntries = errors.New("not JSON objects joined by commas")

// splitEntries finds the entries in the bytes of a batch: JSON objects joined by single commas. The entries alias
// raw. It checks only strings, escapes and brackets: the content was checked when it was queued.
func splitEntries(raw []byte) ([][]byte, error) {
	var entries [][]byte
	for len(raw) > 0 {
		n := objectLength(raw)
		if n == 0 {
			return nil, errNotEntries
		}
		entries = append(entries, raw[:n:n])
		raw = raw[n:]
		if len(raw) == 0 {
			break
		}
		if raw[0] != ',' || len(raw) == 1 {
			return nil, errNotEntries
		}
		raw = raw[1:]
	}
	return entries, nil
}

// objectLength returns the length of the object that raw starts with; 0 when there is none, or its end is missing.
func objectLength(raw []byte) int {
	if raw[0] != '{' {
		return 0
	}
	depth := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			n := stringLength(raw[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// stringLength returns the length of the string literal that raw starts with, quotes included; 0 when it has no end.
func stringLength(raw []byte) int {
	for i := 1; i < len(raw); {
		n := bytes.IndexByte(raw[i:], '"')
		if n < 0 {
			return 0
		}
		end := i + n
		slashes := 0
		for raw[end-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return end + 1
		}
		i = end + 1
	}
	return 0
}

// lineIndex reads N from an entry that starts with {"line_index":N. White space may follow: an object without members
// keeps what is between its braces.
func lineIndex(entry []byte) (line int64, ok bool) {
	digits, ok := bytes.CutPrefix(entry, []byte(`{"line_index":`))
	if !ok {
		return 0, false
	}
	const most = 18 // digits that always fit an int64
	n := 0
	for n < len(digits) && n < most && digits[n] >= '0' && digits[n] <= '9' {
		line = line*10 + int64(digits[n]-'0')
		n++
	}
	return line, n > 0 && n < len(digits) && bytes.IndexByte([]byte(",} \t\r"), digits[n]) >= 0
}
