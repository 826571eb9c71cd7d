package proof

import (
	"maps"
	"slices"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/protocol"
)

// Why something cannot be proven.
const (
	whyEpoch    = "of an earlier state file"
	whyNotKept  = "its hashes are not kept any more"
	whyLeftOut  = "some of its lines were left out or refused"
	whyUnknown  = "not remembered here any more"
	whyMasked   = "the server holds some of its secrets masked"
	whyOversize = "a line longer than the cap is stored as a digest"
	whyFormer   = "sent under a former name of this machine"
	whyReplaced = "lines in it differ from the disk; a later generation replaced them"
)

// findings is what a deep comparison found beyond the files on disk.
type findings struct {
	past, vanished, equal, stored control.DeepCount
	retired                       control.DeepCount // the server has only hashes of some of their lines
	why                           map[string]int    // generations in stored, by the reason
	diffs                         []control.FileDifference
}

// unproven counts a generation that is stored but cannot be proven.
func (f *findings) unproven(g protocol.ViewDigest, why string) {
	add(&f.stored, g)
	f.why[why]++
}

func add(c *control.DeepCount, g protocol.ViewDigest) {
	c.Generations++
	c.Lines += g.Lines
	c.Bytes += g.Bytes
}

// addDeep adds findings to the report.
func (r *recorder) addDeep(f *findings) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range []struct {
		to   *control.DeepCount
		from control.DeepCount
	}{{&r.Deep.Past, f.past}, {&r.Deep.Gone, f.vanished}, {&r.Deep.Earlier, f.equal}, {&r.Deep.Retired, f.retired},
		{&r.Deep.Stored, f.stored}} {
		c.to.Generations += c.from.Generations
		c.to.Lines += c.from.Lines
		c.to.Bytes += c.from.Bytes
	}
	for _, why := range slices.Sorted(maps.Keys(f.why)) {
		r.Deep.Why = addReason(r.Deep.Why, why, f.why[why])
	}
	r.Differences = append(r.Differences, f.diffs...)
}

func addReason(list []control.StoredReason, why string, n int) []control.StoredReason {
	for i := range list {
		if list[i].Why == why {
			list[i].Generations += n
			return list
		}
	}
	return append(list, control.StoredReason{Why: why, Generations: n})
}
