package proof

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/redact"
)

// hashesPerRequest is how many line hashes one request asks for.
const hashesPerRequest = 5000

// Hashes is the server's hashes of the lines of one view, fetched when needed.
type Hashes struct {
	reader *remote.Client
	ref    remote.Ref

	page  []*string // hashes of the lines from first on; nil: the server does not have that line
	first int64
}

// NewHashes returns the hashes of what ref names.
func NewHashes(reader *remote.Client, ref remote.Ref) *Hashes {
	return &Hashes{reader: reader, ref: ref}
}

// At returns the server's hash of a line below end; nil when it has none. Ask for lines in ascending order.
func (h *Hashes) At(ctx context.Context, line, end int64) (*string, error) {
	if line >= h.first+int64(len(h.page)) {
		page, err := h.reader.LineHashes(ctx, h.ref, line, min(line+hashesPerRequest, end))
		if err != nil {
			return nil, err
		}
		h.first, h.page = line, page
	}
	if i := line - h.first; i < int64(len(h.page)) {
		return h.page[i], nil
	}
	return nil, nil
}

// lineDiff is the differences found so far.
type lineDiff struct{ missing, differ []control.Range }

// compareLines finds the lines that differ. Lines that are excluded by the rules in force, refused by the server, or
// too long may be missing, but not different. It returns errMoved when the file is no longer the one of the summary.
func (v *verifier) compareLines(ctx context.Context, c *candidate, has *Hashes) (*lineDiff, error) {
	diff, masker := &lineDiff{}, v.Masking.For(c.facts.Dest, c.facts.Stream.Cwd)
	held, proof := NewHeld(has.reader, has.ref), ProofOf(v.Masking.Proof(), masker)
	defer held.Close()
	read := int64(0)
	err := v.eachLine(ctx, c.file.File.Path, c.summary.size, func(l tail.Line) error {
		if read++; read > c.summary.end {
			return errMoved
		}
		hash, err := has.At(ctx, l.Index, c.summary.end)
		if err != nil {
			return err
		}
		excused := c.summary.refused[l.Index] || v.leavesOut(&l, &c.file, &c.facts)
		if l.Oversize {
			there, same := HoldsOversize(&l, hash, c.summary.notes)
			diff.check(l.Index, there, same, excused)
			return nil
		}
		sent, masked := masker.Line(l.Raw)
		same := hash == nil || LineHash(sent) == *hash
		if !same {
			if same, err = c.summary.explained(ctx, held, proof, explicable{l, *hash, sent, masked}); err != nil {
				return err
			}
		}
		diff.check(l.Index, hash != nil, same, excused)
		return nil
	})
	if errors.As(err, new(*fs.PathError)) || err == nil && read < c.summary.end {
		err = errMoved
	}
	return diff, err
}

// HoldsOversize reports whether a server has a line that is longer than the cap, whole or as its digest, and whether
// that is the same line; one with secrets masked is not. hash is of the whole line, nil without one; notes are digests.
func HoldsOversize(l *tail.Line, hash *string, notes map[int64]transcript.Oversize) (there, same bool) {
	if hash != nil {
		return true, *hash == hex.EncodeToString(l.Hash[:])
	}
	note, there := notes[l.Index]
	return there, !there || note == NoteOf(l)
}

// explicable is a line for which the server has another hash than expected.
type explicable struct {
	tail.Line
	hash   string
	sent   []byte         // as the rules in force mask it
	masked []redact.Range // what they mask in it
}

// explained reports whether the server holds the disk's line unmasked, or masked by other rules, and counts that.
func (s *summary) explained(ctx context.Context, held *Held, proof Proof, l explicable) (bool, error) {
	if LineHash(l.Raw) == l.hash {
		s.clear++ // sent before secrets were masked: otherwise the hash would be the expected one
		s.masked -= int64(len(l.masked))
		return true, nil
	}
	if s.retiredThere != nil && s.retiredThere(l.Index) {
		// No bytes are left to explain the hash.
		if s.maskedThere[l.Index] {
			s.countByServer(l.masked)
			return true, nil
		}
		if len(l.masked) == 0 && !redact.HasTokens(l.Raw) {
			return false, nil
		}
		s.retiredUnproven++
		return true, nil
	}
	if s.maskedThere[l.Index] {
		same, err := held.SameButTokens(ctx, l.Index, l.hash, l.Raw, l.sent)
		if same {
			s.countByServer(l.masked)
		}
		return same, err
	}
	has, e, ok, err := held.Explain(ctx, proof, l.Index, l.Raw, l.hash)
	if err != nil || !ok {
		return false, err
	}
	s.masked += int64(e.Proven + e.Unproven - len(l.masked))
	s.unproven += int64(e.Unproven)
	for _, r := range l.masked {
		if !r.Proven {
			s.unproven--
		}
		if bytes.Equal(has[r.Start:r.End], l.Raw[r.Start:r.End]) {
			s.clear++
			break
		}
	}
	return true, nil
}

// countByServer counts a line that the server itself masked, apart from what the rules in force mask in it.
func (s *summary) countByServer(masked []redact.Range) {
	s.byServer++
	s.masked -= int64(len(masked))
	for _, r := range masked {
		if !r.Proven {
			s.unproven--
		}
	}
}

// check notes a line that the server lacks or holds differently.
func (d *lineDiff) check(line int64, has, same, excused bool) {
	switch {
	case !has && !excused:
		d.missing = widen(d.missing, line)
	case !same:
		d.differ = widen(d.differ, line)
	}
}

// Notes returns the oversize lines of a view by their numbers. What is no digest is one of no line.
func Notes(g *protocol.ViewDigest) map[int64]transcript.Oversize {
	notes := make(map[int64]transcript.Oversize, len(g.Oversize))
	for _, o := range g.Oversize {
		n := transcript.Oversize{Offset: o.Offset, Length: o.Length}
		if sum, err := hex.DecodeString(o.SHA256); err == nil {
			copy(n.SHA256[:], sum)
		}
		notes[o.Line] = n
	}
	return notes
}

// LineHash returns the hash of a line without its newline, as a server computes it.
func LineHash(raw []byte) string {
	h := sha256.New()
	h.Write(raw)
	h.Write([]byte{'\n'})
	return hex.EncodeToString(h.Sum(nil))
}

// widen adds a line to ascending ranges.
func widen(ranges []control.Range, line int64) []control.Range {
	if n := len(ranges); n > 0 && ranges[n-1].Last == line-1 {
		ranges[n-1].Last = line
		return ranges
	}
	return append(ranges, control.Range{First: line, Last: line})
}

// stillRefused returns the lines of a generation that the server refused and that no later rewind has replaced. A line
// that was rewound since is a different line, which the server may have accepted.
func stillRefused(dead map[int64]uint32, generations []protocol.ViewDigest, now uint32) map[int64]bool {
	refused := map[int64]bool{}
	for line, in := range dead {
		refused[line] = true
		for _, g := range generations {
			if uint32(g.Generation) > in && uint32(g.Generation) <= now && g.RewoundTo <= line {
				delete(refused, line)
			}
		}
	}
	return refused
}
