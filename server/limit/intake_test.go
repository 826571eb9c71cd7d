package limit

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
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
	first, err := i.Enter(sent(t.Context(), 10), 1, time.Hour)
	kit.Must(t, err)
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
	if want := "ben ann ben ann ben ann ben import ben ben ben ben ben"; got != want {
		t.Errorf("let in: %s\nwant:   %s", got, want)
	}
	if s := i.State(); s != (IntakeState{}) || len(i.users) != 0 {
		t.Errorf("at the end: %+v, %v", s, i.users)
	}
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
			if !ok || no.Status != http.StatusServiceUnavailable || !is || busy.Seconds() < 1 {
				t.Errorf("refused by %v", err)
			}
			break
		}
		held = append(held, p)
	}
	if len(held) != 4 {
		t.Errorf("%d imports of 4 MiB are in half of 32 MiB", len(held))
	}
	live, err := i.Enter(sent(t.Context(), 1000), 1, time.Minute)
	if err != nil {
		t.Fatalf("a line beside imports: %v", err)
	}
	live.Resize(20 * mib) // compressed better than anybody thinks: what it really takes counts
	if s := i.State(); s.Requests != 5 || s.Bytes != 24*mib {
		t.Errorf("%+v", s)
	}
	live.Leave()
	in, passes := make(chan string, 2), make(chan *Pass, 2)
	inQueue(t, i, 9, 8*mib, "one", in, passes)
	inQueue(t, i, 9, 8*mib, "two", in, passes)
	if _, err := i.Enter(sent(t.Context(), 8*mib), 9, time.Hour); err == nil {
		t.Error("a third may wait where two may")
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if p, err := i.Enter(sent(gone, 10), 9, time.Hour); err == nil {
		p.Leave() // there was space
	}
	for _, p := range held {
		p.Leave()
	}
	names := []string{<-in, <-in}
	if slices.Sort(names); !slices.Equal(names, []string{"one", "two"}) {
		t.Errorf("let in: %q", names)
	}
}
