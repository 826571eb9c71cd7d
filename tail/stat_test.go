package tail

import (
	"testing"
	"time"
)

func TestSettled(t *testing.T) {
	second := int64(time.Second)
	for name, c := range map[string]struct {
		at   int64
		want time.Duration
	}{
		"whole seconds":      {7 * second, coarseTick},
		"whole milliseconds": {7*second + 5*int64(time.Millisecond), coarseTick},
		"nanoseconds":        {7*second + 123456789, fineTick},
	} {
		want := c.want
		if !ownChangeTime {
			want = coarseTick
		}
		if got := (Stat{ChangeTime: c.at}).settleTime(); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestFreshStatProvesNothing: what was verified counts for a stat only if no other write can have left it as it is.
func TestFreshStatProvesNothing(t *testing.T) {
	for age, want := range map[time.Duration]bool{-time.Hour: false, 0: false, time.Hour: true} {
		st := Stat{Size: 3, ChangeTime: time.Now().Add(-age).UnixNano()}
		l := inspection{st: st, verified: true, chunk: &Chunk{}}
		if err := l.fillTracked(); err != nil || l.verified != want || (l.chunk.Tracked.Verified == st) != want {
			t.Errorf("changed %s ago: verified %t, %+v, %v", age, l.verified, l.chunk.Tracked.Verified, err)
		}
	}
}
