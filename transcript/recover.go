package transcript

import "bytes"

// Recover finds the records inside a Malformed line: several glued together, one cut off by a crash with the next
// behind it, runs of NULs between or inside them. What was cut is lost and left out. The objects point into line,
// unless it has NULs, and come in the order they stand in.
//
// An object counts as a record if it stands where one may begin (at the start of the line, or behind a record), or if
// what follows it is the end of the line or another record: an object inside the rests of a cut record is followed by
// the rest of that record.
func Recover(line []byte) [][]byte {
	if bytes.IndexByte(line, 0) >= 0 {
		line = bytes.ReplaceAll(line, []byte{0}, nil)
	}
	line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	r := search{line: line, budget: 16*len(line) + 1<<16}
	for r.at >= 0 && r.budget > 0 {
		r.next()
	}
	return r.found
}

// search is a walk over a damaged line.
type search struct {
	line  []byte
	at    int  // where the next object may begin, -1 when there is none
	clean bool // a record ended right before at
	found [][]byte
	// budget is how many more bytes may be read. A line may nest starts of records that never end, each of which has
	// to be tried; real damage never comes near the limit.
	budget int
}

// next tries the object that begins at or behind r.at.
func (r *search) next() {
	start := skipSpace(r.line, r.at)
	clean := start < len(r.line) && r.line[start] == '{' && (r.clean || r.at == 0)
	if !clean {
		if start = recordStart(r.line, r.at); start < 0 {
			r.at = -1
			return
		}
	}
	var l Line
	end := l.object(r.line, start)
	if end < 0 {
		r.budget -= ^end - start
		// The next record broke the string, number or name that the cut one ended in: it begins up to two bytes
		// before the byte that could not be. Or the end of the line came first, for it stands where a value was due.
		r.at, r.clean = max(start+1, ^end-2), false
		if ^end == len(r.line) {
			r.at = start + 1
		}
		return
	}
	r.budget -= end - start
	if after := skipSpace(r.line, end); clean || after == len(r.line) || r.line[after] == '{' {
		r.found = append(r.found, r.line[start:end])
		clean = true
	}
	r.at, r.clean = end, clean
}

// recordStart is where the next text that records begin with stands at or behind i, -1 if nowhere.
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
