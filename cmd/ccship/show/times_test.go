package show

import (
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestSince reads times as people write them.
func TestSince(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"": {}, "2026-11-01": time.Date(2026, 11, 1, 0, 0, 0, 0, time.Local), "36h": now.Add(-36 * time.Hour), "7d": now.Add(-7 * 24 * time.Hour),
		"2026-11-01T12:00:00Z": time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), "1.5d": now.Add(-36 * time.Hour),
	} {
		got, err := Since(text, now)
		kit.Check(t, err == nil && got.Equal(want), "%q: %v, %v", text, got, err)
	}
	for _, text := range []string{"yesterday", "-3h", "-2d", "2026-13-01", "7days", "NaNd", "1e9d"} {
		got, err := Since(text, now)
		kit.Check(t, err != nil, "%q: %v", text, got)
	}
}

// TestUntil: a day is included whole, whatever its length; a time is the end.
func TestUntil(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"": {}, "2026-11-01": time.Date(2026, 11, 2, 0, 0, 0, 0, time.Local), "36h": now.Add(-36 * time.Hour),
		"2026-11-01T12:00:00Z": time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC),
	} {
		got, err := Until(text, now)
		kit.Check(t, err == nil && got.Equal(want), "%q: %v, %v", text, got, err)
	}
	got, err := Until("tomorrow", now)
	kit.Check(t, err != nil, "taken: %v", got)
}
