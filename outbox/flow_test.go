package outbox

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

// TestOrderAndConcurrency: several streams at once, each in order and one request at a time (the server checks).
func TestOrderAndConcurrency(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
		took(r)
		var mu sync.Mutex
		busy, most := 0, 0
		r.set(func(*seen) *canned {
			mu.Lock()
			busy++
			most = max(most, busy)
			mu.Unlock()
			pass(10 * time.Millisecond)
			kit.Locked(&mu, func() { busy-- })
			return nil
		})
		r.backlog(9, 0, 1000, 50)
		r.start()
		pass(time.Minute)
		for id := 1; id <= 9; id++ {
			r.holds(fmt.Sprintf("session-%d", id), numbers(0, 1000)...)
		}
		n := r.queue.waiting()
		kit.Check(t, n == 0 && most == 4, "%d rows wait, %d requests at once", n, most)
		kit.Equal(t, "requests", r.count(), 90)
	})
}

// TestLiveBeforeBacklog: a line written now does not wait behind a backlog, and the backlog goes on along with live
// ones.
func TestLiveBeforeBacklog(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
		took(r)
		r.set(func(*seen) *canned { pass(100 * time.Millisecond); return nil })
		r.backlog(30, 0, 3000, 100)
		r.start()
		pass(5 * time.Second)
		for line := range 20 {
			r.add(conversation(99), rowsOf(line, line+1, 1)...)
			pass(350 * time.Millisecond)
			r.holds("session-99", numbers(0, int64(line+1))...)
		}
		n := len(r.stored("session-1"))
		kit.Check(t, n != 0, "the oldest stream starves")
	})
}

// TestAcksAreGrouped while there is more to send, and recorded at once when there is not.
func TestAcksAreGrouped(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
		took(r)
		r.set(func(*seen) *canned { pass(time.Millisecond); return nil })
		r.queue.add(conversation(1), rowsOf(0, 20000, 100)...)
		r.start()
		pass(time.Minute)
		n := r.queue.committed()
		kit.Check(t, r.queue.waiting() == 0 && n <= 6, "%d commits for 200 requests in 200 ms", n)
		before := time.Now()
		r.add(conversation(1), rowsOf(20000, 20001, 1)...)
		synctest.Wait()
		pass(2 * time.Millisecond)
		synctest.Wait()
		if r.queue.waiting() != 0 {
			t.Errorf("a single line is not settled after %s", time.Since(before))
		}
	})
}

// TestSettleFails: acknowledgements that cannot be recorded are recorded later; nothing is sent twice meanwhile.
func TestSettleFails(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
		took(r)
		full := errors.New("no space left on device")
		fail := true
		r.queue.settle = func() error { return kit.If[error](fail, full, nil) }
		r.queue.add(conversation(1), rowsOf(0, 300, 100)...)
		r.start()
		pass(time.Hour)
		if n := r.count(); n != 3 || r.queue.waiting() != 3 {
			t.Errorf("%d requests, %d rows wait", n, r.queue.waiting())
		}
		kit.Locked(&r.queue.mu, func() { fail = false })
		pass(2 * time.Minute)
		synctest.Wait()
		if sum := r.queue.total(); sum.Entries != 300 || r.queue.waiting() != 0 {
			t.Errorf("settled %d entries, %d rows wait", sum.Entries, r.queue.waiting())
		}
	})
}

// TestStop waits for an answer that is nearly there, records it, and does not wait for one that is not.
func TestStop(t *testing.T) {
	for _, answer := range []time.Duration{500 * time.Millisecond, time.Hour} {
		inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
			took(r)
			hang := make(chan struct{})
			r.set(func(*seen) *canned {
				select {
				case <-time.After(answer):
				case <-hang:
				}
				return nil
			})
			r.queue.add(conversation(1), rowsOf(0, 300, 100)...)
			r.start()
			synctest.Wait()
			start := time.Now()
			r.stop()
			took, want := time.Since(start), 2
			if answer > time.Second {
				want = 3
			}
			if took > 1100*time.Millisecond || r.queue.waiting() != want {
				t.Errorf("stopped in %s, %d rows wait, want %d", took, r.queue.waiting(), want)
			}
			close(hang)
		})
	}
}

// TestLimitsOfARequest: entries, generations, and a line without its newline end a request.
func TestLimitsOfARequest(t *testing.T) {
	r := newRig(t)
	took(r)
	open := rowsOf(250, 251, 1)[0]
	open.NoNewline = true
	rows := append(rowsOf(0, 250, 50), open, Batch{Kind: Marker, From: protocol.Position{Offset: 5020, Line: 251}, To: protocol.Position{Offset: 5021, Line: 251}})
	for _, b := range rowsOf(200, 260, 60) {
		b.Generation, b.RewoundTo = 1, 200
		rows = append(rows, b)
	}
	s := conversation(1)
	s.MaxEntries = 200
	r.queue.add(s, rows...)
	r.drain()
	var got []string
	for _, q := range r.all() {
		got = append(got, fmt.Sprint(len(q.lines), q.ccship["generation"], q.ccship["eof_newline"]))
	}
	// The first request is bounded by the default, for the stream's own limit is not known before.
	want := "[100 0 true 151 0 false 0 0 true 60 1 true]"
	kit.Equal(t, "requests (entries, generation, newline)", fmt.Sprint(got), want)
}

// TestHugeLine passes alone, compressed or not.
func TestHugeLine(t *testing.T) {
	for _, known := range []Learned{{Took: true}, {Took: true, Extension: true, Zstd: true}} {
		r := newRig(t)
		r.announce, r.queue.learned = known.Extension, known
		text := make([]byte, 20<<20)
		for i := range text {
			text[i] = 'a' + byte(i*i%23)
		}
		rows := append(rowsOf(0, 5, 5), batchOf(Objects, 5, entry(5, string(text))))
		r.queue.add(conversation(1), append(rows, rowsOf(6, 9, 3)...)...)
		r.drain()
		r.holds("session-1", numbers(0, 9)...)
		kit.Equal(t, fmt.Sprintf("%+v: bytes arrived", known), r.stored("session-1")[5], entry(5, string(text)))
		r.stop()
	}
}
