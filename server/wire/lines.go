package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
	"unicode"
	"unicode/utf8"

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
