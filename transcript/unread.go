package transcript

import (
	"bytes"
	"encoding/json"
)

// What a line without a record is, in the words that people read.
const (
	UnreadDamaged = "damaged line"
	UnreadUTF16   = "UTF-16 with a line break inside a character" // whose code has the byte of a newline
	UnreadPiece   = "JSON, but no whole record"
)

// Unread says what a line is that is not blank and has no Records.
func Unread(line []byte) string {
	switch {
	case isWide(line):
		return UnreadUTF16
	case isPiece(line):
		return UnreadPiece
	}
	return UnreadDamaged
}

// isWide reports whether a line is cut out of UTF-16: one byte of many of its units is zero, always the same one.
func isWide(line []byte) bool {
	var zeros [2]int
	for i, c := range line {
		if c == 0 {
			zeros[i%2]++
		}
	}
	most, least := max(zeros[0], zeros[1]), min(zeros[0], zeros[1])
	return most > 0 && 4*most >= len(line) && 4*least <= most
}

// isPiece reports whether a line is whole in itself, as those of an indented record are: a member, a value, brackets.
func isPiece(line []byte) bool {
	rest := bytes.TrimRight(bytes.TrimSpace(line), ",")
	if key, value, ok := bytes.Cut(rest, []byte(`":`)); ok && json.Valid(append(bytes.Clone(key), '"')) {
		rest = bytes.TrimSpace(value)
	}
	return len(bytes.Trim(rest, "{}[], \t")) == 0 || json.Valid(rest)
}
