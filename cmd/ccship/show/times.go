package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// Since reads a day, a time, or how long ago; "" is the beginning of time.
func Since(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339, "2006-01-02T15:04", "2006-01-02 15:04"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	var days float64
	n, err := fmt.Sscanf(text, "%fd", &days)
	if err == nil && n == 1 && strings.HasSuffix(text, "d") && days >= 0 && days < 36525 {
		return now.Add(-time.Duration(days * 24 * float64(time.Hour))), nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, control.Usage(fmt.Sprintf("invalid time %q", text), "a time looks like 2026-11-01, 36h or 7d")
}

// Until reads what Since reads, as an end that is not included: a day ends at its midnight. "" is no end.
func Until(text string, now time.Time) (time.Time, error) {
	if day, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	return Since(text, now)
}
