package daemon

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/ccship/ccship/daemon/document/file"
)

const (
	// lookShare is what part of the time looking at documents may take where nothing becomes of it: looks are rarer the
	// more there are.
	lookShare = 2000
	// firstCost is what a look at a session's documents is believed to take before one is timed.
	firstCost = 100 * time.Microsecond
)

// took takes in how long a look took that found nothing. A look that had to wait for a busy machine says little, so it
// counts for no more than a little longer than the ones before.
func (s *shelf) took(d time.Duration) {
	if s.cost == 0 {
		s.cost = firstCost
	}
	s.cost = min(d, s.cost+s.cost/8)
}

// usual is how often a session's documents are looked at, and how rarely at most when there are many.
func (s *shelf) usual(now time.Time) (every, most time.Duration) {
	switch age := now.Sub(s.active); {
	case age < hotFor:
		return hotLook, warmLook
	case age < warmFor:
		return warmLook, coldLook
	}
	return coldLook, coldLook
}

// pace is how long a session's documents are left alone now. The caller holds mu.
func (x *documents) pace(of *shelf, soon bool) time.Duration {
	now := time.Now()
	every, most := of.usual(now)
	if soon {
		every, most = hotLook, hotLook
	}
	var cost time.Duration // of looking once at all that are looked at as often
	for _, s := range x.shelves {
		if base, _ := s.usual(now); base == every && s.wanted() {
			cost += s.cost
		}
	}
	every = min(max(every, lookShare*cost), most)
	if _, slowest := of.usual(now); slowest == warmLook && !soon {
		x.hot = every
	}
	return every
}

// after is when a pause ends that begins now. Longer ones end together, for waking up costs more than a look.
func (x *documents) after(pause time.Duration) time.Time {
	now := time.Now()
	if pause <= hotLook {
		return now.Add(pause)
	}
	age := now.Sub(x.born) + pause
	return x.born.Add((age + hotLook - 1).Truncate(hotLook))
}

// quiet says whether nothing has happened to a session's documents since they were looked at: one call of the system for
// each tells. What it is in doubt of is not quiet. The caller holds work.
func (x *documents) quiet(s site) bool {
	for _, p := range x.papers(s.session, false) {
		if !p.Linked {
			if p.Dest == "" && x.sends(x.within(s, s.path(&p))) {
				return false
			}
			continue
		}
		if !x.quietPaper(s, &p) {
			return false
		}
	}
	return true
}

func (x *documents) quietPaper(s site, p *paper) bool {
	path := s.path(p)
	s = x.within(s, path)
	if p.problem != s.problem() || p.doubtful || p.missed || !p.since.IsZero() || p.TooLarge && p.Size <= x.conf().DocumentCap || p.Dest != s.dest && x.sends(s) {
		return false
	}
	info, err := os.Stat(path)
	if p.Deleted {
		return errors.Is(err, fs.ErrNotExist)
	}
	return err == nil && info.Mode().IsRegular() && file.StampOf(info) == file.Stamp(p.Stat)
}
