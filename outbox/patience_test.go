package outbox

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// waits has settlements wait until they must not, as a state does to which nothing is written.
func (r *rig) waits() { r.queue.later = func(now <-chan struct{}) { <-now } }

// TestPatience: a small acknowledgement waits half a second for a write to share, and what a caller waits for does not.
func TestPatience(t *testing.T) {
	for name, test := range map[string]struct {
		rows []Batch
		then func(r *rig)
		want time.Duration
	}{
		"one line":                   {rowsOf(0, 1, 1), nil, patience},
		"much":                       {[]Batch{batchOf(Objects, 0, entry(0, strings.Repeat("x", patientBytes)))}, nil, 0},
		"somebody waits":             {rowsOf(0, 1, 1), func(r *rig) { r.drainer.Hasten() }, 0},
		"somebody waited before":     {rowsOf(0, 1, 1), func(r *rig) { r.drainer.Hasten()() }, patience},
		"the end":                    {rowsOf(0, 1, 1), func(r *rig) { r.stop() }, 0},
		"more lines, little in all":  {rowsOf(0, 1, 1), func(r *rig) { r.add(conversation(2), rowsOf(0, 1, 1)...) }, patience},
		"the server stepped back":    {rowsOf(0, 1, 1), func(r *rig) { r.drainer.StepBack("store_behind", "") }, 0},
		"the server learned to talk": {rowsOf(0, 1, 1), func(r *rig) { r.announce = true; r.add(conversation(2), rowsOf(0, 1, 1)...) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
				took(r)
				r.announce = false
				r.waits()
				r.start()
				r.add(conversation(1), rowsOf(9, 10, 1)...) // the first answer is news, and recorded at once
				synctest.Wait()
				r.add(conversation(1), test.rows...)
				synctest.Wait()
				began := time.Now()
				if test.then != nil {
					test.then(r)
				}
				for r.queue.queued(1) > 0 && time.Since(began) < time.Minute {
					pass(time.Millisecond)
					synctest.Wait()
				}
				if took := time.Since(began); took < test.want-time.Millisecond || took > test.want+2*time.Millisecond {
					t.Errorf("recorded after %s, want %s", took, test.want)
				}
			})
		})
	}
}
