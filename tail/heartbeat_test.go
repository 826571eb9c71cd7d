package tail

import (
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// The main loop comes round by itself while nothing happens, and not any more once it has ended.
func TestSinceTurn(t *testing.T) {
	w := newWorld(t)
	w.start()
	for range 3 {
		turn := w.tail.lastHeartbeat.Load()
		w.until("the loop comes round", func() bool { return w.tail.lastHeartbeat.Load() > turn })
	}
	since := w.tail.SinceHeartbeat()
	kit.Check(t, since >= 0 && since <= patience, "since %s", since)
	w.stop()
	turn := w.tail.lastHeartbeat.Load()
	w.until("time passes", func() bool { return w.tail.SinceHeartbeat() > 100*time.Millisecond })
	kit.Equal(t, "an ended loop came round", w.tail.lastHeartbeat.Load(), turn)
}
