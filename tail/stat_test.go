package tail

import (
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
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
		kit.Equal(t, name, (Stat{ChangeTime: c.at}).settleTime(), want)
	}
}

// TestFreshStatProvesNothing: what was verified counts for a stat only if no other write can have left it as it is, by
// the clock that dated it: a file server's may be hours behind.
func TestFreshStatProvesNothing(t *testing.T) {
	for age, want := range map[time.Duration]bool{-time.Hour: false, 0: false, time.Hour: true} {
		for _, behind := range []time.Duration{0, 400 * 24 * time.Hour} {
			tl := &Tailer{started: time.Now(), wall: time.Now}
			there := time.Now().Add(-behind)
			tl.age(Stat{Device: 2, ChangeTime: time.Now().Add(time.Hour).UnixNano()})
			if age > 0 {
				tl.age(Stat{Device: 1, ChangeTime: there.UnixNano()})
			}
			st := Stat{Device: 1, Size: 3, ChangeTime: there.Add(-age).UnixNano()}
			l := inspection{t: tl, st: st, verified: true, chunk: &Chunk{}}
			if err := l.fillTracked(); err != nil || l.verified != want || (l.chunk.Tracked.Verified == st) != want {
				t.Errorf("changed %s ago, a clock %s behind: verified %t, %+v, %v", age, behind, l.verified, l.chunk.Tracked.Verified, err)
			}
		}
	}
}
