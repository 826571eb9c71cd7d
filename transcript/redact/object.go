package redact

import (
	"bytes"
	"cmp"
	"slices"
)

// inObject searches the string values of a JSON object. Strings without a literal are not decoded.
func (m *Masker) inObject(s *scratch, line []byte) {
	if !s.looked {
		m.suspects(s, line)
	}
	s.looked = false
	everything := s.hidden || s.known != nil
	if len(s.lineHit) == 0 && !everything {
		return
	}
	w, keys := walker{line: line, names: s.names[:0]}, keyLines{}
	defer func() { s.names = w.names[:0] }()
	slices.SortFunc(s.lineHit, func(a, b hit) int { return cmp.Compare(a.at, b.at) })
	hits, hasKey := s.lineHit, slices.ContainsFunc(s.lineHit, m.isKeyEdge)
	for w.next() {
		for len(hits) > 0 && hits[0].at < w.from {
			hits = hits[1:]
		}
		switch found := len(hits) > 0 && hits[0].at < w.end; {
		case (found || everything) && !w.protected():
			m.inString(s, &w)
		case len(hits) == 0 && !everything && !keys.open:
			return
		}
		if hasKey {
			s.ranges = keys.add(s.ranges, &w)
		}
	}
}

// walker steps through the string values of a JSON object. It needs valid JSON to find them all; with any other text it
// still ends.
type walker struct {
	line   []byte
	i      int
	names  []string // by which the open containers are reached
	opened int      // how many containers were opened so far

	name       string // of the value's member; empty in an array
	start, end int    // of the value, without its quotes
	from       int    // where its member starts, or the value itself
}

// next finds the next string value.
func (w *walker) next() bool {
	w.name, w.from = "", w.i
	for w.i < len(w.line) {
		switch w.line[w.i] {
		case '{', '[':
			w.names = append(w.names, w.name)
			w.name, w.from = "", w.i+1
			w.opened++
		case '}', ']':
			if len(w.names) > 0 {
				w.names = w.names[:len(w.names)-1]
			}
			w.name, w.from = "", w.i+1
		case ',':
			w.name, w.from = "", w.i+1
		case '"':
			start := w.i + 1
			end := stringEnd(w.line, start)
			w.i = end + 1
			if w.isName() {
				w.name = memberName(w.line[start:end])
				continue
			}
			w.start, w.end = start, end
			return true
		}
		w.i++
	}
	return false
}

// isName reports whether the string that ended is a member's name, and steps over the colon behind it.
func (w *walker) isName() bool {
	for i := w.i; i < len(w.line); i++ {
		switch w.line[i] {
		case ' ', '\t', '\r', '\n':
		case ':':
			w.i = i + 1
			return true
		default:
			return false
		}
	}
	return false
}

// longestName bounds the names that are context for a value.
const longestName = 64

// memberName returns a name as context; empty if it is long or escaped.
func memberName(name []byte) string {
	if len(name) > longestName || bytes.IndexByte(name, '\\') >= 0 {
		return ""
	}
	return string(name)
}

// stringEnd returns the index of the quote that ends the string, or the end of the line.
func stringEnd(line []byte, i int) int {
	for {
		n := bytes.IndexByte(line[i:], '"')
		if n < 0 {
			return len(line)
		}
		end := i + n
		slashes := 0
		for end-slashes > i && line[end-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return end
		}
		i = end + 1
	}
}

// smallestBlob is the length from which base64 counts as an image's or a signature's.
const smallestBlob = 256

// protected reports whether the value must stay: it is an identity that lines refer to each other by, or binary data.
// What a tool is given or returns is free text: there, names mean nothing.
func (w *walker) protected() bool {
	switch w.name {
	case "id", "uuid", "parentUuid", "sessionId", "requestId", "signature", "timestamp", "type", "tool_use_id",
		"toolUseID", "parentToolUseID", "parent_tool_use_id", "messageId", "leafUuid", "logicalParentUuid", "agentId",
		"sourceToolAssistantUUID", "sourceToolUseID", "promptId":
		if !w.free() {
			return true
		}
	}
	switch w.name {
	case "data", "base64", "signature":
		return w.end-w.start >= smallestBlob && isBase64(w.line[w.start:w.end])
	}
	return false
}

// free reports whether the value belongs to what a tool is given or returns, or to what comes with a prompt.
func (w *walker) free() bool {
	for _, name := range w.names {
		switch name {
		case "input", "toolUseResult", "mcpMeta", "structuredContent", "attachment":
			return true
		}
	}
	return false
}

func isBase64(b []byte) bool {
	for _, c := range b {
		if !ofBase64[c] {
			return false
		}
	}
	return true
}

var ofBase64 = func() (set [256]bool) {
	for c := range set {
		set[c] = isAlnum(byte(c)) || c == '+' || c == '/' || c == '='
	}
	return set
}()
