//go:build unix

package chaos

import (
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// row is one kind of fault. A run makes the trouble, has lines written meanwhile, and ends it with r.over; the proof
// follows.
type row struct {
	group, fault string
	short, long  int // runs; short 0: only in the long form
	room         func(t testing.TB, out *kit.Outcome) *room
	do           func(r *room)
}

// perRoom is how many runs share a room, so that what is compared stays small.
const perRoom = 50

// rows runs each row as a subtest.
func rows(t *testing.T, all []row) {
	for _, row := range all {
		t.Run(row.fault, func(t *testing.T) {
			runs := row.short
			if !kit.IsQuick() {
				runs = min(row.long, kit.SettingNumber("runs", row.long))
			}
			if runs == 0 {
				t.Skip("only in the long form")
			}
			t.Parallel()
			out := &kit.Outcome{Group: row.group, Fault: row.fault}
			kit.Record(t, out)
			for out.Runs < runs && !t.Failed() {
				row.inOneRoom(t, out, min(perRoom, runs-out.Runs))
			}
		})
	}
}

func (w row) inOneRoom(t *testing.T, out *kit.Outcome, runs int) {
	t.Run("room", func(t *testing.T) {
		make := w.room
		if make == nil {
			make = usualRoom
		}
		r := make(t, out)
		r.start()
		r.proof() // of a room without trouble
		for range runs {
			r.began = time.Time{}
			w.do(r)
			if r.began.IsZero() {
				r.over()
			}
			r.proof()
			out.Runs++
			if t.Failed() {
				return
			}
		}
		r.stop()
	})
}

// over says that the trouble is over: from now on recovery is timed.
func (r *room) over() { r.began = time.Now() }

func usualRoom(t testing.TB, out *kit.Outcome) *room { return newRoom(t, out, 6) }

// soon waits up to limit.
func (r *room) soon(limit time.Duration) { kit.Pass(time.Duration(r.rng.Int64N(int64(limit)))) }
