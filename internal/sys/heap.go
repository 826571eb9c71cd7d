package sys

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// least is the smallest share of what is alive that garbage may take: of a much larger heap, collecting costs more than
// its memory is worth.
const least = 40

// BoundHeap limits the garbage that gathers before it is collected, from now on, unless GOGC says how much: to room
// bytes, and to most percent of what is alive. Go's own limit is 100 percent. For a large heap that is memory which
// nobody needs, and a small one is collected more often than it has to be.
func BoundHeap(room, most uint64) {
	if os.Getenv("GOGC") == "" {
		p := &pacer{room: room, most: most, percent: 100, sample: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
		runtime.SetFinalizer(&bell{p}, rung)
	}
}

// bell is garbage: it is found by each collection, and hung up again.
type bell struct{ p *pacer }

func rung(b *bell) {
	b.p.collected()
	runtime.SetFinalizer(&bell{b.p}, rung)
}

type pacer struct {
	room    uint64
	most    uint64
	percent int
	sample  []metrics.Sample
}

// collected sets when the next collection begins.
func (p *pacer) collected() {
	metrics.Read(p.sample)
	if p.sample[0].Value.Kind() != metrics.KindUint64 {
		return
	}
	percent := percentOf(p.sample[0].Value.Uint64(), p.room, p.most)
	if d := percent - p.percent; d < -5 || d > 5 { // each change stops the program for a moment
		p.percent = percent
		debug.SetGCPercent(percent)
	}
}

// percentOf returns how much of garbage may gather, in percent of what is alive.
func percentOf(alive, room, most uint64) int {
	return int(max(least, min(most, 100*room/max(1, alive))))
}
