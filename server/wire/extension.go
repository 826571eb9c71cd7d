package wire

import (
	"encoding/json"
	"fmt"

	"github.com/ccship/ccship/server"
)

// extension is the ccship object of a request: what the protocol's first version cannot say.
type extension struct {
	V          int      `json:"v"`
	Machine    string   `json:"machine"`
	Host       string   `json:"host"`
	Epoch      string   `json:"epoch"`
	Path       string   `json:"path"`
	Cwd        string   `json:"cwd"`
	Project    string   `json:"project"`
	Parent     *string  `json:"parent_session_id"`
	Repository string   `json:"repository"`
	Generation int64    `json:"generation"`
	RewoundTo  int64    `json:"rewound_to"`
	From       position `json:"from"`
	To         position `json:"to"`
	EOFNewline *bool    `json:"eof_newline"` // absent: true
	Edges      []edge   `json:"edges"`
}

type position struct {
	Offset int64 `json:"offset"`
	Line   int64 `json:"line"`
}

// edge is the bytes of a line around its object: [line_index, base64 before, base64 after].
type edge struct {
	line          int64
	before, after []byte
}

// UnmarshalJSON reads the triple.
func (e *edge) UnmarshalJSON(b []byte) error {
	parts := [3]any{&e.line, &e.before, &e.after}
	triple := parts[:]
	if err := json.Unmarshal(b, &triple); err != nil {
		return err
	}
	if len(triple) != len(parts) {
		return fmt.Errorf("an edge has %d parts, not 3", len(triple))
	}
	return nil
}

func (x *extension) check() error {
	if x.V != 1 {
		return BadRequest("bad_extension", fmt.Sprintf("ccship: version %d is not spoken here", x.V))
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

// apply puts what the extension says into a batch that has been read without it.
func (x *extension) apply(b *server.Batch) error {
	if err := x.check(); err != nil {
		return err
	}
	h := &b.Head
	h.Machine, h.Host, h.Epoch = x.Machine, x.Host, x.Epoch
	h.Path, h.Cwd, h.Project = x.Path, x.Cwd, x.Project
	h.Repository = x.Repository
	if x.Parent != nil {
		h.Parent = *x.Parent
	}
	h.Generation, h.RewoundTo = x.Generation, x.RewoundTo
	h.EndLine, h.EndOffset = max(h.EndLine, x.To.Line), x.To.Offset
	h.EOFNewline = x.EOFNewline == nil || *x.EOFNewline
	x.joinEdges(b.Lines)
	return nil
}

// joinEdges gives the lines back what stood around their objects. An edge of a line that is not in the request is
// passed over: a request that was split repeats the edges of the whole.
func (x *extension) joinEdges(lines []server.Line) {
	if len(x.Edges) == 0 {
		return
	}
	edges := make(map[int64]edge, len(x.Edges))
	for _, e := range x.Edges {
		edges[e.line] = e
	}
	for i := range lines {
		l := &lines[i]
		e, ok := edges[l.Index]
		if !ok || l.Kind != server.Object {
			continue
		}
		raw := make([]byte, 0, len(e.before)+len(l.Raw)+len(e.after))
		raw = append(raw, e.before...)
		raw = append(raw, l.Raw...)
		l.Raw = append(raw, e.after...)
	}
}
