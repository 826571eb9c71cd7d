package transcript

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
)

// The fixed parts of wire entries. The receiver cuts off byte for byte what the sender added, so they must not change.
const (
	indexPart    = `{"line_index":`
	opaquePart   = `,"type":"` + opaqueType + `","encoding":"base64","data":"`
	oversizePart = `,"type":"` + oversizeType + `","offset":`
	lengthPart   = `,"length":`
	sumPart      = `,"sha256":"`
	closePart    = `"}`
)

// EntryKind is the kind of line that an entry stands for.
type EntryKind uint8

const (
	ObjectEntry   EntryKind = iota // a line that is a JSON object, without the white space around it
	OpaqueEntry                    // any other line
	OversizeEntry                  // a line longer than the limit, which was not sent
)

// ErrEntry is wrapped by every error of RestoreEntry and ParseOversize: the entry violates the protocol, and retrying
// cannot help.
var ErrEntry = errors.New("not an entry")

// AppendEntry appends the entry of an Object to dst: line_index, then the object's own bytes. l is the result of
// Scan(line). White space around the object is not part of the entry.
func AppendEntry(dst, line []byte, l Line, index int64) []byte {
	dst = append(dst, indexPart...)
	dst = strconv.AppendInt(dst, index, 10)
	if !l.Empty {
		dst = append(dst, ',')
	}
	return append(dst, line[l.Start+1:l.End]...)
}

// AppendOpaque appends the entry of a line of any other shape to dst: the whole line, in base64.
func AppendOpaque(dst, line []byte, index int64) []byte {
	dst = append(dst, indexPart...)
	dst = strconv.AppendInt(dst, index, 10)
	dst = append(dst, opaquePart...)
	dst = base64.StdEncoding.AppendEncode(dst, line)
	return append(dst, closePart...)
}

// AppendOversize appends the entry for a line that is too long to send: its offset in the file, its length without the
// newline, and its hash.
func AppendOversize(dst []byte, index, offset, length int64, sha [32]byte) []byte {
	dst = append(dst, indexPart...)
	dst = strconv.AppendInt(dst, index, 10)
	dst = append(dst, oversizePart...)
	dst = strconv.AppendInt(dst, offset, 10)
	dst = append(dst, lengthPart...)
	dst = strconv.AppendInt(dst, length, 10)
	dst = append(dst, sumPart...)
	dst = hex.AppendEncode(dst, sha[:])
	return append(dst, closePart...)
}

// RestoreEntry reverses Append*: it returns the line's number and its bytes, without surrounding white space. raw is
// nil for an OversizeEntry.
//
// An entry that starts exactly as AppendEntry writes it becomes the original line. Any other object is kept as it is,
// because a plain client may place line_index anywhere or add spaces; only its number is read, from the first top-level
// line_index, which must be an integer ≥ 0. White space around the entry is ignored. raw may point into entry, which is
// never modified. The error wraps ErrEntry.
func RestoreEntry(entry []byte) (index int64, raw []byte, kind EntryKind, err error) {
	l := Scan(entry)
	if l.Shape != Object && l.Shape != Reserved {
		return 0, nil, 0, fmt.Errorf("%w: no JSON object", ErrEntry)
	}
	if !l.HasLineIndex {
		return 0, nil, 0, fmt.Errorf("%w: no line_index", ErrEntry)
	}
	entry = entry[l.Start:l.End]
	index, err = parseIndex(l.lineIndex)
	if err != nil {
		return 0, nil, 0, err
	}
	rest, ok := bytes.CutPrefix(entry, []byte(indexPart))
	if ok {
		_, rest, ok = cutNumber(rest)
	}
	if !ok {
		return index, entry, ObjectEntry, nil
	}
	if data, ok := bytes.CutPrefix(rest, []byte(opaquePart)); ok {
		raw, err = restoreOpaque(data)
		return index, raw, OpaqueEntry, err
	}
	if bytes.HasPrefix(rest, []byte(oversizePart)) {
		_, err = ParseOversize(entry)
		return index, nil, OversizeEntry, err
	}
	return index, restoreObject(entry, rest), ObjectEntry, nil
}

// restoreObject restores the brace in front of what followed the number.
func restoreObject(entry, rest []byte) []byte {
	switch {
	case rest[0] == ',':
		rest = rest[1:]
	case skipSpace(rest, 0) != len(rest)-1:
		return entry // white space between number and comma: AppendEntry did not write this
	}
	raw := make([]byte, 1, 1+len(rest))
	raw[0] = '{'
	return append(raw, rest...)
}

func restoreOpaque(data []byte) ([]byte, error) {
	data, ok := bytes.CutSuffix(data, []byte(closePart))
	if !ok {
		return nil, fmt.Errorf("%w: opaque line with further members", ErrEntry)
	}
	// Strict, so that no two entries stand for one line. The decoder ignores line breaks, but the scan has already
	// rejected those.
	raw, err := base64.StdEncoding.Strict().AppendDecode(nil, data)
	if err != nil {
		return nil, fmt.Errorf("%w: opaque line: %w", ErrEntry, err)
	}
	if raw == nil {
		raw = []byte{} // an empty line is a line too
	}
	return raw, nil
}

// parseIndex parses a line number, which consists of digits only.
func parseIndex(s []byte) (int64, error) {
	n, rest, ok := cutNumber(s)
	if !ok || len(rest) > 0 {
		return 0, fmt.Errorf("%w: line_index is %.20q, not a whole number from 0", ErrEntry, s)
	}
	return n, nil
}

// cutNumber parses the digits at the start of s.
func cutNumber(s []byte) (n int64, rest []byte, ok bool) {
	end := skipDigits(s, 0)
	if end < 0 || end > 1 && s[0] == '0' {
		return 0, s, false
	}
	n, err := strconv.ParseInt(string(s[:end]), 10, 64)
	return n, s[end:], err == nil
}

// Oversize describes a line that was too long to send.
type Oversize struct {
	Offset, Length int64 // in bytes; Length does not include the newline
	SHA256         [32]byte
}

// ParseOversize parses what AppendOversize wrote. The error wraps ErrEntry.
func ParseOversize(entry []byte) (Oversize, error) {
	var o Oversize
	rest := bytes.Trim(entry, " \t\r\n")
	var numbers [3]int64
	for i, part := range []string{indexPart, oversizePart, lengthPart} {
		var ok bool
		if rest, ok = bytes.CutPrefix(rest, []byte(part)); ok {
			numbers[i], rest, ok = cutNumber(rest)
		}
		if !ok {
			return o, fmt.Errorf("%w: oversize note", ErrEntry)
		}
	}
	o.Offset, o.Length = numbers[1], numbers[2]
	rest, found := bytes.CutPrefix(rest, []byte(sumPart))
	sum, closed := bytes.CutSuffix(rest, []byte(closePart))
	if !found || !closed || len(sum) != 2*len(o.SHA256) {
		return o, fmt.Errorf("%w: oversize note", ErrEntry)
	}
	if _, err := hex.Decode(o.SHA256[:], sum); err != nil {
		return o, fmt.Errorf("%w: oversize note: %w", ErrEntry, err)
	}
	return o, nil
}
