package tail

import "time"

// clock notices that the clock on the wall and the monotonic one went apart: the machine slept, or the user set the
// time. Timers stand still while a machine sleeps, so whatever was due is overdue by then.
type clock struct {
	Wall time.Time
	Mono time.Duration
}

// jumpLimit is how far the clocks may drift apart between two looks.
const jumpLimit = 5 * time.Second

// Jump answers by how much the wall clock jumped since the last call, 0 when it did not.
func (c *clock) Jump(wall time.Time, mono time.Duration) time.Duration {
	d := wall.Sub(c.Wall) - (mono - c.Mono)
	c.Wall, c.Mono = wall, mono
	if d > jumpLimit || d < -jumpLimit {
		return d
	}
	return 0
}

// pacer limits a rate of bytes; after a rest it allows a burst of one second's.
type pacer struct {
	Rate int64 // a second
	next time.Duration
}

// Delay returns how long to wait after n more bytes.
func (p *pacer) Delay(now time.Duration, n int) time.Duration {
	p.next = max(p.next, now-time.Second) + time.Duration(n)*time.Second/time.Duration(p.Rate)
	return p.next - now
}
