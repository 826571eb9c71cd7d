package limit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlite"
	"github.com/ccship/ccship/server/store/sqlstore"
	"github.com/ccship/ccship/server/wire"
)

// sent is a request with a body of so many bytes, as sent.
func sent(ctx context.Context, n int64) *http.Request {
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(""))
	r.ContentLength = n
	return r
}

// inQueue has a request wait, and returns once it does. in gets name when it is let in.
func inQueue(t *testing.T, i *Intake, user, bytes int64, name string, in chan<- string, passes chan<- *Pass) {
	t.Helper()
	before := i.State()
	go func() {
		p, err := i.Enter(sent(context.Background(), bytes), user, time.Hour)
		if err != nil {
			in <- name + ": " + err.Error()
			return
		}
		passes <- p
		in <- name
	}()
	for i.State().Live+i.State().Imports == before.Live+before.Imports {
		select {
		case <-t.Context().Done():
			t.Fatal(name + " does not wait")
		case <-time.After(time.Millisecond):
		}
	}
}

// TestIntakeOrder: users take turns, lines just written go before imports, and imports get their turn all the same.
func TestIntakeOrder(t *testing.T) {
	i := NewIntake(1, 1<<30, 100)
	first := kit.Try(i.Enter(sent(t.Context(), 10), 1, time.Hour)).Must(t)
	in, passes := make(chan string), make(chan *Pass, 1)
	inQueue(t, i, 7, 1<<20, "import", in, passes)
	for range 3 {
		inQueue(t, i, 1, 10, "ann", in, passes)
	}
	for range 9 {
		inQueue(t, i, 2, 10, "ben", in, passes)
	}
	var order []string
	first.Leave()
	for range 13 {
		order = append(order, <-in)
		(<-passes).Leave()
	}
	got := strings.Join(order, " ")
	want := "ben ann ben ann ben ann ben import ben ben ben ben ben"
	kit.Check(t, got == want, "let in: %s\nwant:   %s", got, want)
	s := i.State()
	kit.Check(t, s == (IntakeState{}) && len(i.users) == 0, "at the end: %+v, %v", s, i.users)
}

// TestIntakeBounds: neither requests nor their bytes exceed the bounds; imports leave space for lines just written.
func TestIntakeBounds(t *testing.T) {
	const mib = 1 << 20
	i := NewIntake(100, 32*mib, 2)
	var held []*Pass
	for {
		p, err := i.Enter(sent(t.Context(), 4*mib), int64(len(held)), time.Millisecond)
		if err != nil {
			no, ok := errors.AsType[*wire.RefusalError](err)
			busy, is := errors.AsType[*BusyError](err)
			kit.Check(t, ok && no.Status == http.StatusServiceUnavailable && is && busy.Seconds() >= 1, "refused by %v", err)
			break
		}
		held = append(held, p)
	}
	kit.Equal(t, "imports of 4 MiB are in half of 32 MiB", len(held), 4)
	live, err := i.Enter(sent(t.Context(), 1000), 1, time.Minute)
	kit.Require(t, err == nil, "a line beside imports: %v", err)
	live.Resize(20 * mib) // compressed better than anybody thinks: what it really takes counts
	s := i.State()
	kit.Check(t, s.Requests == 5 && s.Bytes == 24*mib, "%+v", s)
	live.Leave()
	in, passes := make(chan string, 2), make(chan *Pass, 2)
	inQueue(t, i, 9, 8*mib, "one", in, passes)
	inQueue(t, i, 9, 8*mib, "two", in, passes)
	_, err = i.Enter(sent(t.Context(), 8*mib), 9, time.Hour)
	kit.Check(t, err != nil, "a third may wait where two may")
	gone, leave := context.WithCancel(t.Context())
	leave()
	if p, err := i.Enter(sent(gone, 10), 9, time.Hour); err == nil {
		p.Leave() // there was space
	}
	for _, p := range held {
		p.Leave()
	}
	names := []string{<-in, <-in}
	slices.Sort(names)
	kit.Check(t, slices.Equal(names, []string{"one", "two"}), "let in: %q", names)
}

// TestSlotsPerUser: one user never has them all, and gives back what it had.
func TestSlotsPerUser(t *testing.T) {
	s := NewSlots(6, 0)
	var held []func()
	for _, user := range []int64{1, 1, 1, 10, 11, 12} {
		if len(held) == 3 {
			_, err := s.Acquire(t.Context(), 1, 1, time.Nanosecond)
			no, ok := errors.AsType[*wire.RefusalError](err)
			kit.Check(t, ok && no.Status == 503 && s.Busy() == 3, "a fourth with the same key: %v", err)
		}
		release := kit.Try(s.Acquire(t.Context(), user, 1, time.Hour)).Must(t)
		held = append(held, release)
	}
	_, err := s.Acquire(t.Context(), 20, 1, time.Nanosecond)
	no, ok := errors.AsType[*wire.RefusalError](err)
	kit.Check(t, ok && no.Status == 503 && s.Busy() == 6, "with another key when all are taken: %v, %d", err, s.Busy())
	gone, leave := context.WithCancel(t.Context())
	leave()
	kit.Err(t, "given up", context.Canceled)(s.Acquire(gone, 20, 1, time.Hour))
	for _, release := range held {
		release()
	}
	kit.Check(t, s.Busy() == 0 && len(s.users) == 0, "%d are still taken, %d keys remembered", s.Busy(), len(s.users))
}

// TestRates: a user has so many requests a minute, others are not concerned, and memory is given back.
func TestRates(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	r := NewRates(60)
	for i := range 60 {
		err := r.Take(1, now)
		kit.Require(t, err == nil, "request %d: %v", i, err)
	}
	no, ok := errors.AsType[*wire.RefusalError](r.Take(1, now))
	kit.Require(t, ok && no.Status == 429, "one too many: %v", no)
	kit.Err(t, "another user", nil)(r.Take(2, now))
	kit.Err(t, "a second later", nil)(r.Take(1, now.Add(time.Second)))
	err := r.Take(3, now.Add(time.Hour))
	kit.Check(t, err == nil && len(r.users) == 1, "%v; %d users are remembered", err, len(r.users))
	kit.Err(t, "without a limit", nil)(NewRates(0).Take(1, now))
}

// TestSnapshotsOfOne: one user's slow downloads leave snapshots to others, and so do those of the links that a user
// made. A slot that is given back is free again.
func TestSnapshotsOfOne(t *testing.T) {
	st := kit.Try(sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "server.db"), sqlstore.Opening{})).Must(t)
	t.Cleanup(func() { kit.Should(t, st.Close()) })
	users := map[string]server.User{}
	for _, name := range []string{"ann", "bob"} {
		u := kit.Try(st.AddUser(t.Context(), name, server.Member, server.By{At: time.Now()})).Must(t)
		users[name] = u
		b := &server.Batch{Owner: u.ID, Received: time.Now(), Lines: []server.Line{{Raw: []byte("{}")}},
			Head: server.Head{SessionID: "s", Machine: "m", Epoch: "e", EndLine: 1}}
		kit.Must(t, st.Put(t.Context(), b))
	}
	f := NewFair(st)
	f.Patience = 20 * time.Millisecond
	open := func(scope server.Scope) server.Snapshot {
		t.Helper()
		snap, err := f.View(t.Context(), scope, server.Ref{SessionID: "s", Owner: users["ann"].ID})
		kit.Require(t, err == nil || errors.Is(err, server.ErrBusy), "%v", err)
		return snap
	}
	var held []server.Snapshot
	for len(held) < 100 {
		snap := open(server.Scope{All: true, User: users["ann"].ID})
		if snap == nil {
			break
		}
		held = append(held, snap)
	}
	kit.Check(t, len(held) <= 4, "one user has %d snapshots", len(held))
	if snap := open(server.Scope{Only: held[0].Session().ID, User: users["ann"].ID}); snap != nil {
		t.Error("a link of the same user opens another")
		held = append(held, snap)
	}
	for _, scope := range []server.Scope{{All: true, User: users["bob"].ID}, {All: true}} {
		snap := open(scope)
		if snap == nil {
			t.Errorf("%+v gets none", scope)
			continue
		}
		held = append(held, snap)
	}
	for _, snap := range held {
		kit.Should(t, snap.Close())
	}
	if snap := open(server.Scope{All: true, User: users["ann"].ID}); snap == nil {
		t.Error("places are not given back")
	} else if err := snap.Close(); err != nil {
		t.Error(err)
	}
}

// TestDownloadHoldsNothing: while a download's lines are written, the store can give all its snapshots to others, and what
// goes away meanwhile ends the download with an error.
func TestDownloadHoldsNothing(t *testing.T) {
	st := kit.Try(sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "server.db"), sqlstore.Opening{})).Must(t)
	t.Cleanup(func() { kit.Should(t, st.Close()) })
	u := kit.Try(st.AddUser(t.Context(), "ann", server.Member, server.By{At: time.Now()})).Must(t)
	var want []server.Line
	for i := range 10 {
		raw := fmt.Appendf(nil, "{%q:%d}", bytes.Repeat([]byte("x"), 300<<10), i)
		want = append(want, server.Line{Index: int64(2 * i), Raw: raw})
	}
	b := &server.Batch{Owner: u.ID, Received: time.Now(), Lines: want,
		Head: server.Head{SessionID: "s", Machine: "m", Epoch: "e", EndLine: 20}}
	kit.Must(t, st.Put(t.Context(), b))
	scope, ref := server.Scope{User: u.ID}, server.Ref{SessionID: "s", Owner: u.ID}
	d := kit.Try(server.OpenDownload(t.Context(), st, scope, ref)).Must(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	span := server.Span{From: 0, To: 20}
	n := 0
	err := d.Lines(t.Context(), span, func(l server.Line) error {
		kit.Check(t, l.Index == want[n].Index && bytes.Equal(l.Raw, want[n].Raw), "line %d is %d with %d bytes", n,
			l.Index, len(l.Raw))
		n++
		var others []server.Snapshot
		for other := range int64(8) { // all that SQLite gives at once; one more would wait
			snap := kit.Try(st.View(ctx, server.Scope{All: true, User: 100 + other}, ref)).Must(t)
			others = append(others, snap)
		}
		for _, snap := range others {
			kit.Should(t, snap.Close())
		}
		return nil
	})
	kit.Check(t, err == nil && n == len(want), "%d lines, %v", n, err)
	err = d.Lines(t.Context(), span, func(l server.Line) error {
		if l.Index > 0 {
			return nil
		}
		_, err := st.Forget(t.Context(), scope, "s", u.ID, time.Now())
		return err
	})
	kit.Check(t, errors.Is(err, server.ErrNotFound), "a session that is forgotten meanwhile ends with %v", err)
	kit.Should(t, d.Close())
}

// TestWaitingOfOne: however many requests one user makes, a part of all may wait, and another user's waits beside them.
func TestWaitingOfOne(t *testing.T) {
	const queue = 4 * leastQueue
	i := NewIntake(1, 1<<30, queue)
	first := kit.Try(i.Enter(sent(t.Context(), 10), 1, time.Hour)).Must(t)
	in, passes := make(chan string, queue), make(chan *Pass, queue)
	for range queue / 4 {
		inQueue(t, i, 1, 10, "ann", in, passes)
	}
	_, err := i.Enter(sent(t.Context(), 1<<20), 1, time.Hour)
	busy, is := errors.AsType[*BusyError](err)
	kit.Check(t, is && busy.Seconds() >= 1, "one more of the same user: %v", err)
	inQueue(t, i, 2, 10, "ben", in, passes)
	first.Leave()
	kit.Equal(t, "the next is another user's", <-in, "ben")
	for range queue / 4 {
		(<-passes).Leave()
	}
	(<-passes).Leave()

	s := NewSlots(2, 1)
	release := kit.Try(s.Acquire(t.Context(), 1, 1, time.Hour)).Must(t)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, mostWaiting)
	for range mostWaiting {
		go func() {
			_, err := s.Acquire(ctx, 1, 1, time.Hour)
			left <- err
		}()
	}
	for waits := 0; waits < mostWaiting; {
		s.mu.Lock()
		waits = s.waitingOf(1)
		s.mu.Unlock()
		runtime.Gosched()
	}
	_, err = s.Acquire(t.Context(), 1, 1, time.Hour)
	no, is := errors.AsType[*wire.RefusalError](err)
	kit.Check(t, is && no.Status == http.StatusServiceUnavailable, "one more of the same user: %v", err)
	kit.Try(s.Acquire(t.Context(), 2, 1, time.Hour)).Must(t)()
	leave()
	for range mostWaiting {
		kit.Check(t, errors.Is(<-left, context.Canceled), "one that waits is let in")
	}
	release()
}

// TestUnknownRequests: of too many connections the one that has been longest in a request of nobody is closed, else one
// of the user who has most. One whose request was answered is of nobody: what is left of its body may never come.
func TestUnknownRequests(t *testing.T) {
	c := NewConns(4)
	var open []net.Conn
	arrive := func(user int64) (answered func()) {
		conn, _ := net.Pipe()
		open = append(open, conn)
		c.Changed(conn, http.StateNew)
		if user >= 0 {
			c.Changed(conn, http.StateActive)
		}
		if user > 0 {
			return Known(c.Context(t.Context(), conn), user)
		}
		return nil
	}
	for _, user := range []int64{1, 2, 2} {
		arrive(user)
	}
	Known(t.Context(), 1)() // no connection of a server
	arrive(2)()
	arrive(0)
	arrive(2)
	arrive(-1)
	var closed []int
	for i, conn := range open {
		if conn.SetDeadline(time.Time{}) != nil {
			closed = append(closed, i)
		}
	}
	kit.Equal(t, "the answered one, that of nobody, one of the user of most", fmt.Sprint(closed), "[1 3 4]")
	kit.Equal(t, "users", len(c.users), 2)
}
