package sys

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

const (
	room = 12 << 20
	most = 200
)

func TestPercentOf(t *testing.T) {
	for _, c := range []struct {
		alive, most uint64
		want        int
	}{
		{0, 100, 100}, {1 << 20, 100, 100}, {room, 100, 100},
		{0, 200, 200}, {room / 2, 200, 200}, {room * 2 / 3, 200, 150}, {room, 200, 100},
		{room + room/2, 100, 66}, {2 * room, 200, 50}, {100 * room, 200, least},
	} {
		got := percentOf(c.alive, room, c.most)
		kit.Check(t, got == c.want, "of %d bytes alive, at most %d %%: %d %%, want %d", c.alive, c.most, got, c.want)
	}
}

// TestBound: with much alive garbage takes a smaller share, and with little the most.
func TestBound(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	BoundHeap(room, most)
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
	until("little is alive", func(p int) bool { return p == most })
}
