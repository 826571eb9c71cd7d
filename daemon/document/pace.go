package document

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// Documents are checked by the clock: that finds the changes of any program on every file system, including editors
// that replace the file, and needs no file system watch. If nothing is linked, nothing is checked.
const (
	shortInterval  = 2 * time.Second
	middleInterval = 30 * time.Second
	longInterval   = 10 * time.Minute

	shortFor  = 10 * time.Minute // after something happened in the session
	middleFor = 12 * time.Hour
)

const (
	// maxShare limits checks without a result to one part in so many of the time: with more documents, checks are rarer.
	maxShare = 2000
	// firstCost is the assumed time of a session's check before one was measured.
	firstCost = 100 * time.Microsecond
)

// addCost records the duration of a check that found nothing. A check that waited for a busy machine proves little, so
// the cost rises slowly.
func (s *sessionDocuments) addCost(d time.Duration) {
	if s.cost == 0 {
		s.cost = firstCost
	}
	s.cost = min(d, s.cost+s.cost/8)
}

// interval returns how often a session's documents are checked, and the largest interval when there are many.
func (s *sessionDocuments) interval(now time.Time) (usual, most time.Duration) {
	switch age := now.Sub(s.active); {
	case age < shortFor:
		return shortInterval, middleInterval
	case age < middleFor:
		return middleInterval, longInterval
	}
	return longInterval, longInterval
}

// pause returns the time until the next check of a session's documents. soon: a change is expected. The caller holds
// mu.
func (t *Tracker) pause(of *sessionDocuments, soon bool) time.Duration {
	now := time.Now()
	every, most := of.interval(now)
	if soon {
		every, most = shortInterval, shortInterval
	}
	var cost time.Duration // of one check of all sessions with that interval
	for _, s := range t.sessions {
		if usual, _ := s.interval(now); usual == every && s.needsChecks() {
			cost += s.cost
		}
	}
	every = min(max(every, maxShare*cost), most)
	if _, slowest := of.interval(now); slowest == middleInterval && !soon {
		t.activeInterval = every
	}
	return every
}

// pauseEnd returns the end of a pause that begins now. Longer pauses end together, because waking up costs more than a
// check.
func (t *Tracker) pauseEnd(pause time.Duration) time.Time {
	now := time.Now()
	if pause <= shortInterval {
		return now.Add(pause)
	}
	age := now.Sub(t.started) + pause
	return t.started.Add((age + shortInterval - 1).Truncate(shortInterval))
}

// unchanged reports whether a session's documents are certainly as at the last check. It makes one system call per
// document. The caller holds work.
func (t *Tracker) unchanged(loc Location) bool {
	for _, d := range t.list(loc.Session, false) {
		if !d.Linked {
			if d.Dest == "" && t.canSend(t.locationOf(loc, loc.path(&d))) {
				return false
			}
			continue
		}
		if !t.documentUnchanged(loc, &d) {
			return false
		}
	}
	return true
}

func (t *Tracker) documentUnchanged(loc Location, d *trackedDocument) bool {
	path := loc.path(d)
	loc = t.locationOf(loc, path)
	if d.problem != loc.problem() || d.unproven || d.missing || !d.changingSince.IsZero() ||
		d.TooLarge && d.Size <= t.Settings.Config().DocumentCap || d.Dest != loc.Dest && t.canSend(loc) {
		return false
	}
	info, err := os.Stat(path)
	if d.Deleted {
		return errors.Is(err, fs.ErrNotExist)
	}
	return err == nil && info.Mode().IsRegular() && stampOf(info) == d.Stat
}
