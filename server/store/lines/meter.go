package lines

import "time"

const (
	// crowd calls or more within span are a crowd.
	crowd = 4
	span  = 10 * time.Millisecond
	// While calls wait for each other, worth of them or more have to be together on the mean, or they do not wait for the
	// next alone: few callers that each come again once they are answered are a crowd too, and waiting makes them slow.
	worth = 6
	alone = time.Second
)

// meter reports whether calls come in a crowd that gains by waiting for each other. The zero value is ready.
type meter struct {
	since   time.Time // when it began to count
	came    int       // how many came since
	crowded bool      // crowd of them came within the time before

	mean float64   // of how many waited together last; 0: none did
	rest time.Time // until when it was not worth it
}

// count notes a call.
func (m *meter) count(now time.Time) {
	if d := now.Sub(m.since); d >= span {
		m.crowded = m.came >= crowd && d < 2*span
		m.since, m.came = now, 0
	}
	m.came++
}

// waits reports whether calls shall wait for each other.
func (m *meter) waits(now time.Time) bool { return m.crowded && !now.Before(m.rest) }

// together notes how many calls waited for each other.
func (m *meter) together(n int, now time.Time) {
	if m.mean == 0 {
		m.mean = worth + 2
	}
	if m.mean += (float64(n) - m.mean) / 4; m.mean < worth {
		m.mean, m.rest = 0, now.Add(alone)
	}
}
