package outbox

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// inBubble runs f with a rig over pipes in fake time.
func inBubble(t *testing.T, f func(t *testing.T, r *rig, p *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, p, end := pipeRig(t)
		defer end()
		f(t, r, p)
	})
}

// TestRetryAfterHolds: nothing is sent before it, whatever the caller.
func TestRetryAfterHolds(t *testing.T) {
	tests := []struct {
		name   string
		header []string
		want   time.Duration
	}{
		{"seconds", []string{"Retry-After", "300"}, 5 * time.Minute},
		{"date by the server's clock", []string{"Retry-After", "Sun, 06 Nov 1994 08:53:37 GMT", "Date", "Sun, 06 Nov 1994 08:49:37 GMT"}, 4 * time.Minute},
		{"capped", []string{"Retry-After", "86400"}, 10 * time.Minute},
	}
	for _, code := range []int{429, 503, 401} {
		for _, test := range tests {
			t.Run(fmt.Sprintf("%d %s", code, test.name), func(t *testing.T) {
				inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
					r.set(func(*seen) *canned { return status(code, test.header...) })
					r.queue.add(conversation(1), rowsOf(0, 5, 5)...)
					r.start()
					synctest.Wait()
					r.set(nil)
					start := time.Now()
					for time.Since(start) < test.want-2*time.Second {
						r.drainer.Wake()
						r.drainer.Retry(true)
						pass(time.Second)
						if n := r.count(); n != 1 {
							t.Fatalf("%d requests %s after the plea", n, time.Since(start))
						}
					}
					kit.Equal(t, "retry after", r.drainer.Health().RetryAt.Sub(start), test.want)
					pass(3 * time.Second)
					synctest.Wait()
					r.holds("session-1", numbers(0, 5)...)
				})
			})
		}
	}
}

// TestNothingAcceptedForDays: however often the server refuses an entry, nothing is buried while it has accepted
// nothing in between. Then it is, once it is refused again.
func TestNothingAcceptedForDays(t *testing.T) {
	for name, rows := range map[string][]Batch{"one entry": rowsOf(0, 1, 1), "two": rowsOf(0, 2, 2), "a document": {NewPacker().Documents(itemsOf(`{"n":0}`))}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
				took(r)
				r.queue.learned.Accepts, r.accept = Kinds(0).With(Documents), acceptsAll
				var items atomic.Int64
				r.beside = func(w http.ResponseWriter, _ *http.Request) { items.Add(1); w.WriteHeader(http.StatusBadRequest) }
				r.set(func(q *seen) *canned { return kit.If(q.session == "session-1", status(400), nil) })
				r.queue.add(conversation(1), rows...)
				r.start()
				pass(72 * time.Hour)
				synctest.Wait()
				if sum := r.queue.total(); len(sum.Dead) > 0 || r.queue.waiting() == 0 || r.count()+int(items.Load()) < 20 {
					t.Fatalf("%d dead letters, %d rows wait after %d requests, %d of items", len(sum.Dead), r.queue.waiting(), r.count(), items.Load())
				}
				r.add(conversation(2), rowsOf(0, 1, 1)...)
				pass(time.Hour)
				synctest.Wait()
				if sum := r.queue.total(); len(sum.Dead) == 0 || r.queue.waiting() > 0 {
					t.Errorf("%d dead letters, %d rows wait", len(sum.Dead), r.queue.waiting())
				}
			})
		})
	}
}

// TestFlushCutsEveryWait: what a person asks for now is tried now, whatever the server asked for.
func TestFlushCutsEveryWait(t *testing.T) {
	for name, answer := range map[string]*canned{
		"Retry-After":     status(503, "Retry-After", "300"),
		"a refused key":   status(401, "Retry-After", "300"),
		"refused entries": status(400),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
				took(r)
				r.set(func(*seen) *canned { return answer })
				r.queue.add(conversation(1), rowsOf(0, 1, 1)...)
				r.start()
				synctest.Wait()
				r.set(nil)
				r.drainer.Flush()
				synctest.Wait()
				r.holds("session-1", 0)
				r.queue.add(conversation(1), rowsOf(1, 2, 1)...)
				r.set(func(*seen) *canned { return answer })
				r.drainer.Wake()
				synctest.Wait()
				r.drainer.Flush()
				synctest.Wait()
				h := r.drainer.Health()
				kit.Check(t, r.count() >= 4 && h.State != StateOK, "%d requests, health %+v", r.count(), h)
			})
		})
	}
}

// TestRetryAfterOutlastsSuccess: another stream's answer, asked for before the plea, does not end it.
func TestRetryAfterOutlastsSuccess(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
		took(r)
		r.set(func(q *seen) *canned {
			switch q.number {
			case 1:
				return status(429, "Retry-After", "60")
			case 2:
				pass(time.Second)
			}
			return nil
		})
		r.queue.add(conversation(1), rowsOf(0, 5, 5)...)
		r.queue.add(conversation(2), rowsOf(0, 200, 100)...)
		r.start()
		pass(58 * time.Second)
		kit.Equal(t, "requests before the minute was over", r.count(), 2)
		pass(3 * time.Second)
		synctest.Wait()
		kit.Equal(t, "rows wait", r.queue.waiting(), 0)
	})
}

// TestPauseProbes each minute, not more often, and goes on at once on request.
func TestPauseProbes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
		r.set(func(*seen) *canned { return status(401) })
		r.backlog(6, 0, 5, 5)
		r.queue.learned = Learned{Took: true}
		r.start()
		synctest.Wait()
		first := r.count()
		for range 10 {
			pass(time.Minute)
			r.drainer.Wake() // arriving rows do not end a refusal
		}
		synctest.Wait()
		n := r.count() - first
		kit.Check(t, first <= 4 && n == 10, "%d requests at first, %d in ten minutes", first, n)
		r.set(nil)
		r.drainer.Retry(true)
		synctest.Wait()
		kit.Equal(t, "rows wait, though the key changed", r.queue.waiting(), 0)
	})
}

// TestRetryWhileInFlight: the refusal of a request that went with the old key does not count for the new one.
func TestRetryWhileInFlight(t *testing.T) {
	for _, refused := range []bool{false, true} {
		inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
			took(r)
			const old = "ccs_old"
			var key atomic.Value
			key.Store(old)
			r.key = func() (string, error) { return key.Load().(string), nil }
			r.set(func(q *seen) *canned {
				pass(time.Second)
				if q.header.Get("X-API-Key") == old {
					return status(401)
				}
				return nil
			})
			r.queue.add(conversation(1), rowsOf(0, 5, 5)...)
			r.start()
			pass(500 * time.Millisecond)
			if refused {
				pass(time.Minute + time.Second) // the first probe is in flight
			}
			key.Store("ccs_new")
			r.drainer.Retry(true)
			pass(2 * time.Second)
			synctest.Wait()
			kit.Equal(t, fmt.Sprintf("refused before: %t: rows wait, though the key is good now", refused), r.queue.waiting(), 0)
		})
	}
}

// TestNoAnswer: a server that says nothing is given up after its time, and asked again.
func TestNoAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
		log, words := testLog()
		r.drainer.Log = log
		r.set(func(q *seen) *canned {
			if q.number == 1 {
				<-q.gone
				return &canned{cut: true}
			}
			return nil
		})
		text := strings.Repeat("x", 3<<20)
		r.queue.add(conversation(1), batchOf(Objects, 0, entry(0, text)))
		start := time.Now()
		r.start()
		pass(time.Minute)
		r.holds("session-1", 0)
		kit.Has(t, "log", words(), "no answer within 33s")
		took := r.drainer.Health().LastOKAt.Sub(start)
		kit.Check(t, took >= 33*time.Second && took <= 35*time.Second, "taken after %s", took)
	})
}

// TestOneProbeWhileFailing: however much waits, a failing server gets one request at a time.
func TestOneProbeWhileFailing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
		r.queue.learned = Learned{Took: true}
		r.set(func(q *seen) *canned {
			r.mu.Lock()
			busy := len(r.busy)
			r.mu.Unlock()
			kit.Check(t, q.number <= 4 || busy <= 1, "%d requests at once", busy)
			pass(time.Duration(rand.IntN(1000)) * time.Millisecond)
			return status(503)
		})
		r.backlog(20, 0, 5, 5)
		r.start()
		pass(10 * time.Minute)
		r.set(nil)
		pass(time.Minute)
		synctest.Wait()
		kit.Equal(t, "rows wait", r.queue.waiting(), 0)
	})
}

// TestLimitGrows: a learned limit doubles after a day, until it limits nothing.
func TestLimitGrows(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
		took(r)
		r.queue.learned.MaxRaw, r.queue.learned.MaxRawAt = 1<<20, time.Now().Unix()
		r.start()
		for day, want := range []int64{1 << 20, 2 << 20, 0, 0} {
			r.add(conversation(1), rowsOf(day, day+1, 1)...)
			pass(time.Minute)
			got := r.queue.remembered().MaxRaw
			kit.Check(t, got == want && r.drainer.Health().MaxRequest == want, "day %d: limit %d, want %d", day, got, want)
			pass(24 * time.Hour)
		}
	})
}

// TestProbeBackOff: a server that stays unknown is asked ever less often, down to once a minute or so.
func TestProbeBackOff(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
		r.announce = false
		r.queue.add(history(), rowsOf(0, 3, 3)...)
		r.start()
		pass(time.Hour)
		n := r.probed()
		kit.Check(t, n >= 60 && n <= 240, "%d probes in an hour", n)
	})
}

// TestPause: while paused nothing leaves, neither rows nor probes, whatever wakes the loop; then everything does.
func TestPause(t *testing.T) {
	for _, known := range []bool{true, false} {
		inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
			rows := rowsOf(0, 300, 100)
			if known {
				took(r)
			} else {
				rows = []Batch{batchOf(Opaque, 0, entry(0, "odd"))} // waits for the server to be asked what it speaks
			}
			r.drainer.SetPaused(true)
			r.queue.add(conversation(1), rows...)
			r.start()
			for range 10 {
				pass(time.Hour)
				r.drainer.Wake()
				r.drainer.Retry(true)
				r.drainer.SetPaused(true)
			}
			synctest.Wait()
			n, probes := r.count(), r.probed()
			kit.Check(t, n+probes == 0, "%d requests, %d questions while paused", n, probes)
			r.drainer.SetPaused(false)
			synctest.Wait()
			if !known {
				kit.Check(t, r.probed() != 0, "nothing is asked after the pause")
				return
			}
			pass(time.Second)
			r.holds("session-1", numbers(0, 300)...)
			kit.Equal(t, "rows wait after the pause", r.queue.waiting(), 0)
		})
	}
}

// TestPauseFinishes: what is in flight when the pause begins is acknowledged, and nothing follows it.
func TestPauseFinishes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
		took(r)
		r.set(func(*seen) *canned { pass(time.Second); return nil })
		r.queue.add(conversation(1), rowsOf(0, 300, 100)...)
		r.start()
		synctest.Wait()
		r.drainer.SetPaused(true)
		pass(time.Minute)
		if n := r.queue.waiting(); n != 2 || r.count() != 1 {
			t.Errorf("%d rows wait, %d requests; want the first alone to be done", n, r.count())
		}
	})
}

// TestLimitByAClockAhead: a limit that was learned by a clock that was ahead does not last until that time.
func TestLimitByAClockAhead(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	k := capabilities{Learned: Learned{MaxRaw: 100, MaxRawAt: now.AddDate(1, 0, 0).Unix()}}
	kit.Check(t, k.expire(now) && k.MaxRaw == 200 && !k.expire(now), "%+v", k.Learned)
}
