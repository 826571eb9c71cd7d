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
	if t, ok := plainTime(s); ok {
		return t
	}
	t, err := time.Parse(time.RFC3339Nano, string(s))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// plainTime parses the form that Claude Code writes: 2026-08-20T09:00:00.101Z.
func plainTime(s []byte) (time.Time, bool) {
	if len(s) != 24 || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' || s[19] != '.' ||
		s[23] != 'Z' {
		return time.Time{}, false
	}
	bad := false
	number := func(from, to int) (n int) {
		for _, c := range s[from:to] {
			bad = bad || c-'0' > 9
			n = n*10 + int(c-'0')
		}
		return n
	}
	year, month, day := number(0, 4), number(5, 7), number(8, 10)
	hour, minute, second, ms := number(11, 13), number(14, 16), number(17, 19), number(20, 23)
	if bad || month < 1 || month > 12 || day < 1 || day > 28 || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false // leave the last days of a month to time.Parse, which knows the calendar
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, ms*1e6, time.UTC), true
}
