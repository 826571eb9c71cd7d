package outbox

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
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

// TestRefusedItemsAreNotBuriedTogether: items that the server refuses wait for something that it accepts after them, and
// hold up no lines. Those that something else refuses wait longer.
func TestRefusedItemsAreNotBuriedTogether(t *testing.T) {
	anonymous := map[string]string{"Ccship-Protocol": ""} // not the server that was there before
	for name, test := range map[string]struct {
		refusal canned
		dead    int
	}{
		"the server's words":      {canned{status: 400, body: `{"error":{"code":"bad","message":"no"}}`}, 12},
		"too large for a server":  {canned{status: 413, body: `{"error":{"code":"large","message":"no"}}`}, 12},
		"a page of a proxy":       {canned{status: 400, body: "<html>", header: anonymous}, 0},
		"a page about large ones": {canned{status: 413, body: "<html>", header: anonymous}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := newShelf(t)
			took(r)
			r.queue.learned.Accepts = Kinds(0).With(Checkpoints)
			r.queue.learned.Config = r.drainer.dest.fingerprint()
			s.set(func(string, []byte) *canned { return &test.refusal })
			p := NewPacker()
			for i := range 12 {
				r.queue.add(conversation(1), p.Checkpoints(itemsOf(fmt.Sprintf(`{"id":%d}`, i))))
			}
			r.start()
			r.until("it is refused", func() bool { return r.drainer.Health().State == StateRefused })
			kit.Equal(t, "dead letters before anything was accepted", len(r.queue.total().Dead), 0)
			lines := int64(0)
			r.until("the lines pass, and what is judged is buried", func() bool {
				if r.queue.waiting() <= 12 {
					r.add(conversation(1), rowsOf(int(lines), int(lines)+1, 1)...)
					lines++
				}
				return lines > 20 && len(r.queue.total().Dead) == test.dead
			})
			h := r.drainer.Health()
			kit.Check(t, h.Accepts.Has(Checkpoints) && h.Unwanted == 0, "health %+v", h)
		})
	}
}

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

func TestMessage(t *testing.T) {
	tests := []struct{ text, want string }{
		{`{"error":{"code":"x","message":"two\nlines"}}`, "two lines"},
		{`{"error":"plain words"}`, "plain words"},
		{`{"message":"outer"}`, "outer"},
		{`{"error":{"code":"x"},"message":"outer"}`, "outer"},
		{`{"error":7}`, ""}, {`<html>`, ""}, {``, ""}, {`[1]`, ""},
		{`{"message":"` + strings.Repeat("ö", 500) + `"}`, strings.Repeat("ö", 100) + "…"},
	}
	for _, test := range tests {
		kit.Equal(t, fmt.Sprintf("%.40s", test.text), problemMessage([]byte(test.text)), test.want)
	}
}

// TestLongRedirect keeps what a server says short: the log gets it with each refusal.
func TestLongRedirect(t *testing.T) {
	answer := &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {"/" + strings.Repeat("\x1b", 1<<20)}}}
	r := interpret(answer, nil, 1, false)
	kit.Check(t, len(r.summary) < 5*shown && !strings.Contains(r.summary, "\x1b"), "%d bytes: %.100q", len(r.summary), r.summary)
}

func TestRetryAfterOf(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	tests := []struct {
		after, date string
		want        time.Duration
	}{
		{"", "", 0}, {"7", "", 7 * time.Second}, {" 7 ", "", 7 * time.Second}, {"-7", "", 0}, {"soon", "", 0},
		{"599", "", 599 * time.Second}, {"601", "", 10 * time.Minute}, {"9223372036854775807", "", 10 * time.Minute},
		{date(time.Minute), "", time.Minute}, {date(-time.Minute), "", 0}, {date(time.Hour), "", 10 * time.Minute},
		{date(time.Hour), date(time.Hour - time.Minute), time.Minute}, // a server an hour ahead
		{date(-time.Hour), date(-time.Hour - time.Minute), time.Minute},
		{date(time.Minute), "yesterday", time.Minute},
	}
	for _, test := range tests {
		h := http.Header{"Retry-After": {test.after}, "Date": {test.date}}
		kit.Equal(t, fmt.Sprintf("Retry-After %q, Date %q", test.after, test.date), retryAfter(h, now), test.want)
	}
}

func TestAnnouncementOf(t *testing.T) {
	tests := []struct {
		protocol, codings string
		want              announcement
	}{
		{"1", "zstd, gzip", announcement{extension: true, zstd: true}},
		{"2, 1", "GZIP;q=0.5,zstd;q=0", announcement{extension: true}},
		{"1", "", announcement{extension: true}},
		{"2", "zstd", announcement{}},
		{"", "gzip", announcement{}}, // any server may say that of itself
	}
	for _, test := range tests {
		h := http.Header{"Ccship-Protocol": {test.protocol}, "Accept-Encoding": {test.codings}}
		kit.Equal(t, fmt.Sprintf("%q, %q", test.protocol, test.codings), announcementOf(h), test.want)
	}
}
