package derive

import (
	"sync"
	"time"

	"github.com/ccship/ccship/tail"
)

const (
	maxFailures = 6                     // in a row; then a transcript is left alone until it changes
	firstRetry  = 50 * time.Millisecond // doubled after each failure
)

// schedule decides which transcript is folded next. It is safe for concurrent use.
type schedule struct {
	mu       sync.Mutex
	begun    bool                     // what an earlier daemon left is in it; guarded by mu
	live     map[tail.FileID]struct{} // with watched lines that are not folded; guarded by mu
	backfill map[tail.FileID]struct{} // with a compaction, from an import; guarded by mu
	folding  bool                     // one of them is being folded; guarded by mu
	unsaved  int                      // transcripts with effects that are not saved; guarded by mu
	failed   map[tail.FileID]failure  // guarded by mu
}

// failure is a transcript that could not be folded.
type failure struct {
	times   int       // in a row
	retryAt time.Time // not before
}

// add schedules transcripts.
func (s *schedule) add(id tail.FileID, backfill bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(id, backfill)
}

func (s *schedule) put(id tail.FileID, backfill bool) {
	if backfill {
		s.backfill[id] = struct{}{}
	} else {
		s.live[id] = struct{}{}
	}
}

// begin says that what an earlier daemon left to do is scheduled.
func (s *schedule) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = true
}

// remove takes a transcript off the schedule.
func (s *schedule) remove(id tail.FileID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, id)
	delete(s.backfill, id)
}

// nextLive takes a transcript with watched lines off the schedule. folded must be called for it.
func (s *schedule) nextLive() (tail.FileID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next(s.live)
}

// nextBackfill is nextLive for transcripts that were imported.
func (s *schedule) nextBackfill() (tail.FileID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next(s.backfill)
}

// next takes a transcript from a list. The caller holds mu.
func (s *schedule) next(list map[tail.FileID]struct{}) (tail.FileID, bool) {
	now := time.Now()
	for id := range list {
		if f, failed := s.failed[id]; failed && now.Before(f.retryAt) {
			continue
		}
		delete(list, id)
		s.folding = true
		return id, true
	}
	return 0, false
}

// folded ends the folding of a transcript that next returned. more says that there are lines left.
func (s *schedule) folded(id tail.FileID, backfill, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if more {
		s.put(id, backfill)
	}
	s.folding = false
}

// succeed forgets the failures of a transcript.
func (s *schedule) succeed(id tail.FileID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.failed, id)
}

// fail counts a failure, and reports whether the transcript is to be tried again.
func (s *schedule) fail(id tail.FileID) (retry bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.failed[id]
	if f.times++; f.times >= maxFailures {
		delete(s.failed, id)
		return false
	}
	f.retryAt = time.Now().Add(firstRetry << f.times)
	s.failed[id] = f
	return true
}

// addUnsaved counts the transcripts with effects that are not saved.
func (s *schedule) addUnsaved(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsaved += n
}

// waiting returns how long there is nothing to fold; at most longest.
func (s *schedule) waiting(now time.Time, longest time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, f := range s.failed {
		if _, scheduled := s.live[id]; scheduled {
			longest = min(longest, max(time.Millisecond, f.retryAt.Sub(now)))
		}
	}
	if len(s.backfill) > 0 {
		longest = min(longest, time.Second)
	}
	return longest
}

// hasBackfill reports whether imported transcripts are scheduled.
func (s *schedule) hasBackfill() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.backfill) > 0
}

func (s *schedule) caughtUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun && len(s.live)+len(s.backfill)+s.unsaved == 0 && !s.folding
}
