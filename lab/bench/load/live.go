package load

import (
	"context"
	"slices"
	"sync"
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
	Begin    time.Duration // how long they begin: all sessions are new, and what they send by then does not count
}

// Lived is what became of it.
type Lived struct {
	Posts, Lines, Failed int64 // Lines: with those of the beginning
	P50, P99             time.Duration
}

// Run lets the daemons write for a while, then returns; no request is left under way.
func (l *Live) Run(ctx context.Context, d time.Duration) (total Lived) {
	var mu sync.Mutex
	var took []time.Duration
	var group sync.WaitGroup
	began := time.Now()
	for n := range l.Sessions {
		s := &l.Sessions[n]
		one := daemon{user: l.User(s.Owner), s: s, next: s.Live(l.Source), every: l.Every, counts: began.Add(l.Begin),
			began: began.Add(l.Every * time.Duration(n) / time.Duration(len(l.Sessions))), until: began.Add(d)}
		group.Go(func() {
			one.run(ctx)
			mu.Lock()
			defer mu.Unlock()
			took, total.Lines, total.Failed = append(took, one.took...), total.Lines+one.lines, total.Failed+one.failed
		})
	}
	group.Wait()
	slices.Sort(took)
	if total.Posts = int64(len(took)); total.Posts > 0 {
		total.P50, total.P99 = took[len(took)/2], took[(len(took)*99-1)/100]
	}
	return total
}

// daemon is one of them. They begin one after the other within one Every, as they are spread in the world.
type daemon struct {
	user                 *Client
	s                    *corpus.Session
	next                 func() string
	every                time.Duration
	began, counts, until time.Time
	took                 []time.Duration // of posts that count
	lines, failed        int64
}

func (d *daemon) run(ctx context.Context) {
	var at span
	timer := time.NewTimer(time.Until(d.began))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		if time.Now().After(d.until) {
			return
		}
		due := int64(time.Since(d.began)/d.every) + 1
		at.lines = at.lines[:0]
		for n := d.lines; n < due && len(at.lines) < mostEntries; n++ {
			at.lines = append(at.lines, d.next())
		}
		d.post(ctx, &at)
		timer.Reset(time.Until(d.began.Add(time.Duration(d.lines) * d.every)))
	}
}

// post sends lines until they are taken. A server that refuses is asked again after a second.
func (d *daemon) post(ctx context.Context, at *span) {
	for ctx.Err() == nil {
		began := time.Now()
		err := d.user.put(ctx, d.s, at)
		if began.After(d.counts) {
			d.took = append(d.took, time.Since(began))
		}
		if err == nil {
			d.lines += int64(len(at.lines))
			at.line, at.offset = at.line+len(at.lines), at.offset+at.bytes()
			return
		}
		d.failed++
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// Watch calls look each second until stop is called, which returns once no call is under way.
func Watch(look func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				look()
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}
