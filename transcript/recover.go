package transcript

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

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
