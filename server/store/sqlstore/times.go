package sqlstore

import "time"

// Micros returns a time as it is stored: Unix microseconds, 0 for the zero time.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Moment returns a stored time. One that JSON has no form for, beyond the years 0 to 9999, is none.
func Moment(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	t := time.UnixMicro(us).UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		return time.Time{}
	}
	return t
}
