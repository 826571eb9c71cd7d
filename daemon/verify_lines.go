package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// pageLines is how many line hashes are asked for at once.
const pageLines = 5000

// pages is the server's hashes of the lines of one generation, fetched as they are needed.
type pages struct {
	reader *remote.Client
	ref    remote.Ref

	page  []*string // hashes of the lines from first on; nil: the server does not have that line
	first int64
}

// at returns the server's hash of a line below end, nil when it has none. Lines are asked for in order.
func (p *pages) at(ctx context.Context, line, end int64) (*string, error) {
	if line >= p.first+int64(len(p.page)) {
		hashes, err := p.reader.LineHashes(ctx, p.ref, line, min(line+pageLines, end))
		if err != nil {
			return nil, err
		}
		p.first, p.page = line, hashes
	}
	if i := line - p.first; i < int64(len(p.page)) {
		return p.page[i], nil
	}
	return nil, nil
}

// lineDiff is what differs so far.
type lineDiff struct{ missing, differ []control.Range }

// compareLines says exactly which lines differ. Lines that are left out by the rules in force, refused by the
// server, or too long, may be missing, but not different.
func (v *verifier) compareLines(ctx context.Context, has *pages, p *proof, t tail.Tracked, f *state.Facts) (*lineDiff, error) {
	diff := &lineDiff{}
	err := v.eachLine(ctx, t, func(l diskLine) error {
		hash, err := has.at(ctx, l.index, p.end)
		if err != nil {
			return err
		}
		excused := l.oversize || p.refused[l.index] || v.excludes(l, t, f.SentBefore)
		diff.check(l, hash, excused)
		return nil
	})
	return diff, err
}

// check compares one line with the server's hash of it, nil when the server has none.
func (d *lineDiff) check(l diskLine, has *string, excused bool) {
	switch {
	case has == nil && !excused:
		d.missing = widen(d.missing, l.index)
	case has == nil || l.oversize:
	case lineHash(l.raw) != *has:
		d.differ = widen(d.differ, l.index)
	}
}

func lineHash(raw []byte) string {
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

// stillRefused are the lines of a generation that the server refused and that no later rewind has replaced: the server
// need not have those. One that was rewound since is another line, which the server may have taken.
func stillRefused(dead map[int64]uint32, generations []remote.Generation, now uint32) map[int64]bool {
	refused := map[int64]bool{}
	for line, in := range dead {
		refused[line] = true
		for _, g := range generations {
			if g.Generation > in && g.Generation <= now && g.RewoundTo <= line {
				delete(refused, line)
			}
		}
	}
	return refused
}

// isOf reports whether a stream is of one of some sessions.
func isOf(stream string, sessions map[string]bool) bool {
	return slices.ContainsFunc(transcript.ForgetNames(stream), func(name string) bool { return sessions[name] })
}
