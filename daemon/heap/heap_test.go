package heap

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

const room = 12 << 20

func TestPercentOf(t *testing.T) {
	for alive, want := range map[uint64]int{0: 100, 1 << 20: 100, room: 100, room + room/2: 66, 2 * room: 50, 100 * room: least} {
		if got := percentOf(alive, room); got != want {
			t.Errorf("of %d bytes alive %d %%, want %d", alive, got, want)
		}
	}
}

// TestBound: with much alive garbage takes a smaller share, and with little Go's own again.
func TestBound(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	Bound(room)
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	until := func(what string, ok func(int) bool) {
		for end := time.Now().Add(2 * time.Minute); !ok(percent()); runtime.GC() {
			if time.Now().After(end) {
				t.Fatalf("%s: still %d %%", what, percent())
			}
		}
	}
	alive := make([]byte, 3*room)
	until("much is alive", func(p int) bool { return p >= least && p <= 60 })
	runtime.KeepAlive(alive)
	until("little is alive", func(p int) bool { return p == 100 })
}
