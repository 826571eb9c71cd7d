package transcript

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
)

// The parts of the wire's entries. What one end writes the other cuts off again byte for byte, so they are exact.
const (
	indexPart    = `{"line_index":`
	opaquePart   = `,"type":"` + opaqueType + `","encoding":"base64","data":"`
	oversizePart = `,"type":"` + oversizeType + `","offset":`
	lengthPart   = `,"length":`
	sumPart      = `,"sha256":"`
	closePart    = `"}`
)

// EntryKind says what an entry stands for.
type EntryKind uint8

const (
	ObjectEntry   EntryKind = iota // a line that is a JSON object, without the line's edges
	OpaqueEntry                    // any other line
	OversizeEntry                  // a line longer than the cap, which was not sent
)

// ErrEntry is wrapped by every error of RestoreEntry and ParseOversize: the entry is not the protocol's, and trying
// again cannot help.
var ErrEntry = errors.New("not an entry")

// AppendEntry appends the entry of an Object to dst: its own bytes between the braces, behind the line_index. l is
// what Scan said of line; the line's edges are not in the entry.
func AppendEntry(dst, line []byte, l Line, index int64) []byte {
	dst = append(dst, indexPart...)
	dst = strconv.AppendInt(dst, index, 10)
	if !l.Empty {
		dst = append(dst, ',')
	}
	return append(dst, line[l.Start+1:l.End]...)
}

// AppendOpaque appends the entry of a line of any other shape to dst: the whole line, its edges too, in base64.
func AppendOpaque(dst, line []byte, index int64) []byte {
	dst = append(dst, indexPart...)
	dst = strconv.AppendInt(dst, index, 10)
	dst = append(dst, opaquePart...)
	dst = base64.StdEncoding.AppendEncode(dst, line)
	return append(dst, closePart...)
}

// AppendOversize appends the note that stands for a line too long to send: where it lies in the file, its length
// without the newline, and its hash.
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

// RestoreEntry is the way back: the line's number and its bytes, without edges. raw is nil for an OversizeEntry.
//
// An entry that begins exactly as AppendEntry writes it gets back what it was before. Any other object (a plain
// client may put its line_index anywhere, or space it) is kept as it came, and only its number is read: the first
// top-level line_index, a whole number ≥ 0. White space around the entry is not part of it. raw may point into entry,
// which is never written to. The error wraps ErrEntry.
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

// restoreObject puts the brace back in front of what followed the number.
func restoreObject(entry, rest []byte) []byte {
	switch {
	case rest[0] == ',':
		rest = rest[1:]
	case skipSpace(rest, 0) != len(rest)-1:
		return entry // white space between number and comma: not written by AppendEntry
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
	// Strict: two entries never stand for one line. The decoder itself passes over line breaks, but the scan has
	// refused those already.
	raw, err := base64.StdEncoding.Strict().AppendDecode(nil, data)
	if err != nil {
		return nil, fmt.Errorf("%w: opaque line: %v", ErrEntry, err)
	}
	if raw == nil {
		raw = []byte{} // an empty line is a line
	}
	return raw, nil
}

// parseIndex reads a line number, written as digits alone.
func parseIndex(s []byte) (int64, error) {
	n, rest, ok := cutNumber(s)
	if !ok || len(rest) > 0 {
		return 0, fmt.Errorf("%w: line_index is %.20q, not a whole number from 0", ErrEntry, s)
	}
	return n, nil
}

// cutNumber reads the digits that s begins with.
func cutNumber(s []byte) (n int64, rest []byte, ok bool) {
	end := skipDigits(s, 0)
	if end < 0 || end > 1 && s[0] == '0' {
		return 0, s, false
	}
	n, err := strconv.ParseInt(string(s[:end]), 10, 64)
	return n, s[end:], err == nil
}

// Oversize is the note about a line that was too long to send.
type Oversize struct {
	Offset, Length int64 // bytes; Length is that of the line without its newline
	SHA256         [32]byte
}

// ParseOversize reads what AppendOversize wrote. The error wraps ErrEntry.
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
		return o, fmt.Errorf("%w: oversize note: %v", ErrEntry, err)
	}
	return o, nil
}
