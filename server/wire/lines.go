package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"unicode"
	"unicode/utf8"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

const (
	// maxEntries bounds what a request of many tiny entries takes in memory in addition to its bytes.
	maxEntries = 100_000
	// MaxNumber bounds line numbers, offsets and generations: what every JSON reader can hold exactly.
	MaxNumber = 1 << 53
	// maxName bounds the names in a request, in bytes: they are kept with every stream, and stand in indexes. maxPath
	// bounds paths and names of projects, which come from what a transcript says.
	maxName = 1 << 10
	maxPath = 32 << 10
)

// ParseLines reads the body of POST /api/conversations. The lines point into body where they can; body is not changed.
// An error is a *RefusalError.
func ParseLines(body []byte) (*server.Batch, error) {
	p := parser{scan: scan{b: body}}
	if err := p.members(); err != nil {
		return nil, err
	}
	if p.batch.Head.SessionID == "" {
		return nil, BadRequest("bad_request", "session_id is missing or empty")
	}
	if !p.seen["entries"] {
		return nil, BadRequest("bad_request", "entries is missing")
	}
	h := &p.batch.Head
	h.EOFNewline = true
	for _, l := range p.batch.Lines {
		h.EndLine = max(h.EndLine, l.Index+1)
	}
	if p.extension != nil {
		if err := p.extension.fill(h); err != nil {
			return nil, err
		}
		p.extension.joinEdges(p.batch.Lines)
	}
	return &p.batch, nil
}

type parser struct {
	scan
	batch     server.Batch
	extension *extension
	seen      map[string]bool
}

// members reads the object that the body must be.
func (p *parser) members() error {
	p.seen = map[string]bool{}
	if !p.take('{') {
		return BadRequest("bad_json", "the body is not a JSON object")
	}
	for first := true; !p.take('}'); first = false {
		if !first && !p.take(',') {
			return BadRequest("bad_json", "the body is not valid JSON")
		}
		var name string
		if p.space() != '"' || json.Unmarshal(p.value(), &name) != nil || !p.take(':') {
			return BadRequest("bad_json", "the body is not valid JSON")
		}
		if err := p.member(name); err != nil {
			return err
		}
	}
	if p.space() != 0 || p.i < len(p.b) {
		return BadRequest("bad_json", "something follows the JSON object")
	}
	return nil
}

// member reads one value. A known name may occur only once, because readers disagree on which of two counts.
func (p *parser) member(name string) error {
	switch name {
	case "session_id", "project_hash", "entries", "ccship":
		if p.seen[name] {
			return BadRequest("bad_json", name+" comes twice")
		}
		p.seen[name] = true
	}
	if name == "entries" {
		return p.entries()
	}
	value := p.value()
	switch name {
	case "session_id":
		return decodeName(value, name, &p.batch.Head.SessionID)
	case "project_hash":
		return decodeName(value, name, &p.batch.Head.ProjectHash)
	case "ccship":
		if len(value) == 0 || value[0] != '{' {
			return BadRequest("bad_extension", "ccship is not an object")
		}
		if err := CheckParts(value); err != nil {
			return err
		}
		p.extension = &extension{}
		if err := json.Unmarshal(value, p.extension); err != nil {
			return BadRequest("bad_extension", fmt.Sprintf("ccship: %v", err))
		}
		return nil
	}
	if !json.Valid(value) {
		return BadRequest("bad_json", "the body is not valid JSON")
	}
	return nil
}

func decodeName(value []byte, name string, to *string) error {
	if string(value) == "null" && name == "project_hash" {
		return nil
	}
	if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, to) != nil {
		return BadRequest("bad_request", name+" is not a string")
	}
	return CheckName(*to, name)
}

// CheckName refuses names that are too long or not UTF-8, and session ids with control characters: they would break
// addresses and pages. name is the field, for the error.
func CheckName(s, name string) error {
	if err := checkText(s, name, maxName); err != nil {
		return err
	}
	for _, r := range s {
		if unicode.IsControl(r) && name == "session_id" {
			return BadRequest("bad_request", name+" has control characters")
		}
	}
	return nil
}

// checkText refuses a text that is longer than most bytes or not UTF-8.
func checkText(s, name string, most int) error {
	if len(s) > most || !utf8.ValidString(s) {
		return BadRequest("bad_request", name+" is too long or not UTF-8")
	}
	return nil
}

func (p *parser) entries() error {
	if !p.take('[') {
		return BadRequest("bad_request", "entries is not an array")
	}
	for first := true; !p.take(']'); first = false {
		if !first && !p.take(',') {
			return BadRequest("bad_json", "the body is not valid JSON")
		}
		if p.space() != '{' {
			return BadRequest("bad_entry", fmt.Sprintf("entry %d is not an object", len(p.batch.Lines)))
		}
		value := p.value()
		if value == nil {
			return BadRequest("bad_json", "the body is not valid JSON")
		}
		l, err := parseEntry(value)
		if err != nil {
			return BadRequest("bad_entry", fmt.Sprintf("entry %d: %v", len(p.batch.Lines), err))
		}
		if len(p.batch.Lines) == maxEntries {
			return Refuse(http.StatusRequestEntityTooLarge, "too_large",
				fmt.Sprintf("the request has more than %d entries", maxEntries))
		}
		p.batch.Lines = append(p.batch.Lines, l)
	}
	return nil
}

// parseEntry restores the line an entry was made from. Of an oversize line the entry itself is kept, as a note.
func parseEntry(entry []byte) (server.Line, error) {
	index, raw, kind, err := transcript.RestoreEntry(entry)
	if err != nil {
		return server.Line{}, err
	}
	if index >= MaxNumber {
		return server.Line{}, fmt.Errorf("line_index %d is out of range", index)
	}
	switch kind {
	case transcript.OpaqueEntry:
		return server.Line{Index: index, Kind: server.Opaque, Raw: raw}, nil
	case transcript.OversizeEntry:
		return server.Line{Index: index, Kind: server.Oversize, Raw: entry}, nil
	}
	return server.Line{Index: index, Kind: server.Object, Raw: raw}, nil
}

// extension is the ccship object of a request, as it is checked.
type extension struct{ protocol.Extension }

func (x *extension) check() error {
	if x.Version != protocol.Version {
		return BadRequest("bad_extension", fmt.Sprintf("ccship: version %d is not spoken here", x.Version))
	}
	if x.Machine == "" || x.Epoch == "" {
		return BadRequest("bad_extension", "ccship: machine and epoch must be set")
	}
	for _, n := range []int64{x.Generation, x.RewoundTo, x.From.Offset, x.From.Line, x.To.Offset, x.To.Line} {
		if n < 0 || n > MaxNumber {
			return BadRequest("bad_extension", "ccship: a number is negative or out of range")
		}
	}
	for _, s := range []string{x.Machine, x.Host, x.Epoch, x.Repository} {
		if err := CheckName(s, "ccship: a name"); err != nil {
			return err
		}
	}
	for _, s := range []string{x.Path, x.Cwd, x.Project} {
		if err := checkText(s, "ccship: a path", maxPath); err != nil {
			return err
		}
	}
	return nil
}

// fill checks the extension and puts what it says of the stream into a head. An error is a *RefusalError.
func (x *extension) fill(h *server.Head) error {
	if err := x.check(); err != nil {
		return err
	}
	h.Machine, h.Host, h.Epoch = x.Machine, x.Host, x.Epoch
	h.Path, h.Cwd, h.Project = x.Path, x.Cwd, x.Project
	h.Repository = x.Repository
	if x.Parent != nil {
		h.Parent = *x.Parent
	}
	h.Generation, h.RewoundTo = x.Generation, x.RewoundTo
	h.EndLine, h.EndOffset = max(h.EndLine, x.To.Line), x.To.Offset
	h.EOFNewline = x.EOFNewline == nil || *x.EOFNewline
	return nil
}

// joinEdges gives the lines back what stood around their objects. An edge of a line that is not in the request is
// passed over: a request that was split repeats the edges of the whole.
func (x *extension) joinEdges(lines []server.Line) {
	if len(x.Edges) == 0 {
		return
	}
	edges := make(map[int64]protocol.Edge, len(x.Edges))
	for _, e := range x.Edges {
		edges[e.Line] = e
	}
	for i := range lines {
		l := &lines[i]
		e, ok := edges[l.Index]
		if !ok || l.Kind != server.Object {
			continue
		}
		raw := make([]byte, 0, len(e.Before)+len(l.Raw)+len(e.After))
		raw = append(raw, e.Before...)
		raw = append(raw, l.Raw...)
		l.Raw = append(raw, e.After...)
	}
}

// scan cuts JSON into values by counting brackets. It finds where a value ends, much faster than a decoder, and
// checks nothing else: the caller validates the values.
type scan struct {
	b []byte
	i int
}

// space skips white space and answers the byte after it, 0 at the end.
func (s *scan) space() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return c
		}
	}
	return 0
}

// take skips white space and c; false when something else is there.
func (s *scan) take(c byte) bool {
	if s.space() != c {
		return false
	}
	s.i++
	return true
}

// value cuts out the value that starts here, nil when none ends.
func (s *scan) value() []byte {
	c := s.space()
	start := s.i
	switch c {
	case 0:
		return nil
	case '"':
		if !s.str() {
			return nil
		}
	case '{', '[':
		if !s.brackets() {
			return nil
		}
	default:
		n := bytes.IndexAny(s.b[s.i:], ",]}")
		if n <= 0 {
			return nil
		}
		s.i += n
		return bytes.TrimRight(s.b[start:s.i], " \t\r\n")
	}
	return s.b[start:s.i]
}

// str skips a string; s.i is at its opening quote.
func (s *scan) str() bool {
	i := s.i + 1
	for {
		n := bytes.IndexByte(s.b[i:], '"')
		if n < 0 {
			return false
		}
		i += n + 1
		// The quote ends the string unless an odd number of backslashes stands before it.
		k := i - 2
		for k > s.i && s.b[k] == '\\' {
			k--
		}
		if (i-2-k)%2 == 0 {
			s.i = i
			return true
		}
	}
}

// brackets skips an object or array; s.i is at its opening bracket.
func (s *scan) brackets() bool {
	depth := 0
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case '"':
			if !s.str() {
				return false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				s.i++
				return true
			}
		}
		s.i++
	}
	return false
}
