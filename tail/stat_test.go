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
