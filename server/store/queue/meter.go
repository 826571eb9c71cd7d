package queue

import "time"

// crowd calls or more within span are a crowd.
const (
	crowd = 4
	span  = 10 * time.Millisecond
)

// meter tells whether calls come in a crowd. The zero value is ready.
type meter struct {
	since   time.Time // when it began to count
	came    int       // how many came since
	crowded bool      // crowd of them came within the time before
}

// count notes a call, and tells whether calls come in a crowd.
func (m *meter) count(now time.Time) bool {
	if d := now.Sub(m.since); d >= span {
		m.crowded = m.came >= crowd && d < 2*span
		m.since, m.came = now, 0
	}
	m.came++
	return m.crowded
}
