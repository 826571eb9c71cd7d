package transcript

import "time"

// parseTime parses a time in RFC 3339 or milliseconds since 1970. Invalid or implausible times are zero.
func parseTime(value []byte) time.Time { return PlausibleTime(writtenTime(value)) }

// PlausibleTime returns t, or the zero time if t lies outside the years 1970 to 9999 in UTC. No record is from then,
// and encoding/json cannot encode times after year 9999, which a zone offset can reach.
func PlausibleTime(t time.Time) time.Time {
	if y := t.Year(); y < 1970 || y > 9999 {
		return time.Time{}
	}
	return t
}

// writtenTime returns the time that a value states, in UTC.
func writtenTime(value []byte) time.Time {
	s := stringContents(value)
	if s == nil {
		if ms := integer(value); ms > 0 {
			return time.UnixMilli(ms).UTC()
		}
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, string(s))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}
