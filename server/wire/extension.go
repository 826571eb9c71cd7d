package wire

import (
	"fmt"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
)

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
