package proof

import (
	"context"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/tail"
)

// No hashes are kept here for generations of another epoch, and for those from before a transcript was sent again. The
// lines on disk still prove something: a rewind replaces everything after a line. So a line that differs or is missing,
// and comes before a line that is the same on both sides, was damaged on the server.

// diskHash is what a server may hold of a line on disk.
type diskHash struct {
	sent, raw string // with its secrets masked, and as it is
	excused   bool   // the server need not have it
}

// onDisk returns the hashes of the file's lines; nil when it cannot be read.
func (h *historyCheck) onDisk(ctx context.Context) ([]diskHash, error) {
	if h.disk != nil || h.file.Gone != 0 {
		return h.disk, nil
	}
	masker := h.v.Masking.For(h.facts.Dest, h.facts.Stream.Cwd)
	end, err := h.v.end(&h.file)
	if err != nil {
		return nil, ctx.Err() // a file that is gone or cannot be read was reported before
	}
	err = h.v.eachLine(ctx, h.file.File.Path, end, func(l tail.Line) error {
		sent, masked := masker.Line(l.Raw)
		line := diskHash{sent: LineHash(sent)}
		if len(masked) > 0 {
			line.raw = LineHash(l.Raw)
		}
		line.excused = l.Oversize || h.v.leavesOut(&l, &h.file, &h.facts)
		if _, dead := h.v.deadLines[h.facts.Stream.ID][l.Index]; dead {
			line.excused = true
		}
		h.disk = append(h.disk, line)
		return nil
	})
	if err != nil {
		h.disk = nil
		return nil, ctx.Err()
	}
	return h.disk, nil
}

// judge compares a generation without hashes with the lines that are still on disk. epoch is "" for the file's own;
// later are the generations of the epoch.
func (h *historyCheck) judge(ctx context.Context, epoch string, g protocol.ViewDigest,
	all []protocol.ViewDigest) error {
	disk, err := h.onDisk(ctx)
	if err != nil {
		return err
	}
	why := whyNotKept
	if epoch != "" {
		why = whyEpoch
	}
	if disk == nil {
		h.unproven(g, why)
		return nil
	}
	ref := h.refOf(g)
	if epoch != "" {
		ref.Epoch = epoch
	}
	found, err := compareWithDisk(ctx, disk, NewHashes(h.reader, ref), g.EndLine)
	if err != nil {
		return err
	}
	found.dropReplaced(uint32(g.Generation), all)
	masked := false
	if len(found.differ) > 0 {
		if masked, err = h.masked(ctx, g, ref); err != nil {
			return err
		}
	}
	switch {
	case g.CountRetired() > 0 && len(found.missing) == 0 && (masked || len(found.differ) == 0):
		add(&h.retired, g)
	case masked:
		h.unproven(g, whyMasked)
	case len(found.missing)+len(found.differ) > 0:
		d := h.differs(uint32(g.Generation), detailEarlier)
		d.Epoch, d.Missing, d.Differ = epoch, found.missing, found.differ
	case found.replaced:
		h.unproven(g, whyReplaced)
	case found.rewound:
		h.unproven(g, why)
	case len(g.Oversize) > 0:
		h.unproven(g, whyOversize)
	default:
		add(&h.equal, g)
	}
	return nil
}

// earlier is what a comparison with the disk found.
type earlier struct {
	lineDiff
	rewound  bool // it continues with other lines than the disk
	replaced bool // lines that differ are shown from a later generation
}

// compareWithDisk finds the lines below end that were damaged on the server.
func compareWithDisk(ctx context.Context, disk []diskHash, has *Hashes, end int64) (*earlier, error) {
	found := &earlier{rewound: end > int64(len(disk))}
	var open lineDiff // lines that differ after the last equal one
	for i := int64(0); i < min(end, int64(len(disk))); i++ {
		hash, err := has.At(ctx, i, end)
		if err != nil {
			return nil, err
		}
		switch d := disk[i]; {
		case hash != nil && (*hash == d.sent || *hash == d.raw):
			found.missing, found.differ = append(found.missing, open.missing...), append(found.differ, open.differ...)
			open = lineDiff{}
		case d.excused:
		case hash != nil:
			open.differ = widen(open.differ, i)
		case len(open.differ) == 0: // nothing was rewound yet, so the line should be there
			found.missing = widen(found.missing, i)
		default:
			open.missing = widen(open.missing, i)
		}
	}
	found.rewound = found.rewound || len(open.differ) > 0
	return found, nil
}

// dropReplaced drops lines that a later generation of the epoch has replaced.
func (e *earlier) dropReplaced(generation uint32, all []protocol.ViewDigest) {
	keep := func(ranges []control.Range) (kept []control.Range) {
		for _, r := range ranges {
			for _, g := range all {
				if uint32(g.Generation) > generation {
					r.Last = min(r.Last, g.RewoundTo-1)
				}
			}
			if r.First <= r.Last {
				kept = append(kept, r)
			}
		}
		return kept
	}
	missing, differ := keep(e.missing), keep(e.differ)
	e.replaced = len(missing) < len(e.missing) || len(differ) < len(e.differ)
	e.missing, e.differ = missing, differ
}
