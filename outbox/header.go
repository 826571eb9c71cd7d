package outbox

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retryAfterMax is the upper limit of a Retry-After.
const retryAfterMax = 10 * time.Minute

// hasToken reports whether a comma-separated header lists token with a weight other than 0.
func hasToken(values []string, token string) bool {
	for _, v := range values {
		for t := range strings.SplitSeq(v, ",") {
			name, weight, _ := strings.Cut(t, ";")
			if !strings.EqualFold(strings.TrimSpace(name), token) {
				continue
			}
			_, q, weighted := strings.Cut(weight, "=")
			if f, err := strconv.ParseFloat(strings.TrimSpace(q), 64); !weighted || err != nil || f > 0 {
				return true
			}
		}
	}
	return false
}

// retryAfter reads Retry-After: seconds, or a date relative to the answer's own Date, because clocks differ.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	if seconds, err := strconv.ParseInt(v, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), int64(retryAfterMax/time.Second))) * time.Second
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), retryAfterMax)
}
