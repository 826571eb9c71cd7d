package load

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/lab/bench/corpus"
)

// Live is daemons whose transcripts grow by a line each Every. Each has one request under way at most; lines that come
// meanwhile wait, and go together in the next one.
type Live struct {
	Source   *corpus.Source
	User     func(owner int) *Client
	Sessions []corpus.Session
	Every    time.Duration
	// Begin is how long they begin: what they send by then counts apart. All sessions are new, and made at once.
	Begin time.Duration
	// Quiet daemons, the first ones, stop QuietFor before the others: what they sent must be derived when all end.
	Quiet    int
	QuietFor time.Duration

	began atomic.Pointer[time.Time]
	sent  atomic.Int64
}

// Waiting is how many lines are written and not stored now: the queues of all daemons together. Those that are quiet
// have none.
func (l *Live) Waiting() (n int64) {
	began := l.began.Load()
	if began == nil {
		return 0
	}
	for i := range l.Sessions {
		if past := time.Since(*began) - l.after(i); past >= 0 {
			n += int64(past/l.Every) + 1
		}
	}
	return max(0, n-l.sent.Load())
}

// after is when a daemon begins, so that they are spread over a second as they are in the world.
func (l *Live) after(n int) time.Duration {
	return l.Every * time.Duration(n) / time.Duration(len(l.Sessions))
}

// Lived is what became of it.
type Lived struct {
	Posts, Lines, Refused, Failed int64
	Waiting                       int64 // lines not sent when time was up
	P50, P99, Max                 time.Duration
	BeginP99, BeginMax            time.Duration // of posts while they began, which count nowhere else
}

// Run lets the daemons write for a while, then returns; no request is left under way.
func (l *Live) Run(ctx context.Context, d time.Duration) Lived {
	var total Lived
	var mu sync.Mutex
	var took, first []time.Duration
	var group sync.WaitGroup
	began := time.Now()
	l.began.Store(&began)
	end := began.Add(d)
	for n := range l.Sessions {
		until := end
		if n < l.Quiet {
			until = end.Add(-l.QuietFor)
		}
		group.Go(func() {
			one := daemon{l: l, s: &l.Sessions[n], next: l.Sessions[n].Live(l.Source)}
			one.run(ctx, until, l.after(n))
			mu.Lock()
			defer mu.Unlock()
			took, first = append(took, one.took...), append(first, one.first...)
			total.Lines += one.lines - one.early
			total.Refused += one.refused
			total.Failed += one.failed
			total.Waiting += one.waiting
		})
	}
	group.Wait()
	slices.Sort(took)
	slices.Sort(first)
	total.Posts = int64(len(took))
	total.P50, total.P99, total.Max = at(took, .5), at(took, .99), at(took, 1)
	total.BeginP99, total.BeginMax = at(first, .99), at(first, 1)
	return total
}

// at is a quantile of what is sorted, 0 of nothing.
func at(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))]
}

// daemon is one of them.
type daemon struct {
	l                               *Live
	s                               *corpus.Session
	next                            func() string
	took, first                     []time.Duration // first: while all begin
	lines, waiting, refused, failed int64
	early                           int64 // lines that were sent while all began
}

// run begins after a while of its own.
func (d *daemon) run(ctx context.Context, until time.Time, after time.Duration) {
	user := d.l.User(d.s.Owner)
	began := time.Now().Add(after)
	now := span{}
	timer := time.NewTimer(after)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		if time.Now().After(until) {
			break
		}
		due := int64(time.Since(began)/d.l.Every) + 1
		now.lines = now.lines[:0]
		for n := d.lines; n < due && len(now.lines) < mostEntries; n++ {
			now.lines = append(now.lines, d.next())
		}
		d.post(ctx, user, &now)
		timer.Reset(time.Until(began.Add(time.Duration(d.lines) * d.l.Every)))
	}
	if due := int64(until.Sub(began)/d.l.Every) + 1; due > d.lines {
		d.waiting = due - d.lines
	}
}

// post sends lines until they are taken. A server that asks to wait is asked again after a second.
func (d *daemon) post(ctx context.Context, user *Client, at *span) {
	for ctx.Err() == nil {
		began := time.Now()
		err := user.put(ctx, d.s, at)
		early := began.Sub(*d.l.began.Load()) < d.l.Begin
		if early {
			d.first = append(d.first, time.Since(began))
		} else {
			d.took = append(d.took, time.Since(began))
		}
		if err == nil {
			d.lines += int64(len(at.lines))
			if early {
				d.early += int64(len(at.lines))
			}
			d.l.sent.Add(int64(len(at.lines)))
			at.line, at.offset = at.line+len(at.lines), at.offset+at.bytes()
			return
		}
		if no, ok := errors.AsType[*StatusError](err); ok && no.Code == http.StatusServiceUnavailable {
			d.refused++
		} else {
			d.failed++
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// Watch calls look each second until stop is called, which returns what it saw, in order.
func Watch[T any](look func() T) (stop func() []T) {
	var seen []T
	var ended atomic.Bool
	done := make(chan struct{})
	quit := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				seen = append(seen, look())
			case <-quit:
				return
			}
		}
	}()
	return func() []T {
		if ended.CompareAndSwap(false, true) {
			close(quit)
		}
		<-done
		return seen
	}
}
