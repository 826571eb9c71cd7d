package outbox

import "time"

// aside is what a lane skips: artifacts that the server refused. Later ones are sent. The skipped ones are sent again
// after a while; suspects as soon as the server has accepted something. The zero aside skips nothing.
type aside struct {
	to        uint64    // highest Seq that is passed over; 0: none
	suspect   bool      // refused again after an acknowledgement, it is a dead letter
	successes uint64    // requests acknowledged, over all lanes, when it was refused
	until     time.Time // then it is sent again in any case
	times     int       // refusals in a row
}

// passed returns the Seq up to which the lane passes over its batches now. successes counts requests over all lanes.
func (a *aside) passed(successes uint64, now time.Time) uint64 {
	if a.suspect && successes != a.successes || !now.Before(a.until) {
		return 0
	}
	return a.to
}

// setAside makes a lane skip the artifacts that were refused: whatever is wrong with them, lines continue. Until the
// server accepts something, it counts as refusing.
func (l *loop) setAside(now time.Time, r result, suspect bool) bool {
	a := &r.lane.aside
	a.to, a.suspect, a.successes = r.transfer.last, suspect, l.successes
	a.until = now.Add(min(time.Second<<min(a.times, 6), time.Minute))
	a.times++
	r.reply.verdict, r.reply.entry = refused, true
	l.closeGate(now, &r, true)
	return false
}
