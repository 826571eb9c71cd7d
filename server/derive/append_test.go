package derive_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
)

// counting counts the lines that are read, and the bytes of states that are stored.
type counting struct {
	derive.Derivable
	lines, states int
	seen          []server.Summary
}

func (c *counting) View(ctx context.Context, scope server.Scope, ref server.Ref) (server.Snapshot, error) {
	snap, err := c.Derivable.View(ctx, scope, ref)
	return countingLines{snap, &c.lines}, err
}

func (c *counting) SaveDerived(ctx context.Context, list ...*server.Derivation) error {
	for _, d := range list {
		c.states += len(d.State)
		c.seen = append(c.seen, d.Summary)
	}
	return c.Derivable.SaveDerived(ctx, list...)
}

type countingLines struct {
	server.Snapshot
	n *int
}

func (c countingLines) Lines(ctx context.Context, s server.Span, yield func(server.Line) error) error {
	return c.Snapshot.Lines(ctx, s, func(l server.Line) error {
		*c.n++
		return yield(l)
	})
}

// running starts a Deriver that counts what it does. caughtUp waits until nothing lags.
func (s shelf) running(c *counting) (caughtUp, stop func()) {
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error)
	go func() { ended <- (&derive.Deriver{Store: c, Workers: 1}).Run(ctx) }()
	caughtUp = func() {
		s.Helper()
		for n := int64(1); n > 0; {
			var err error
			if n, err = s.Lag(s.Context()); err != nil {
				s.Fatal(err)
			}
		}
	}
	return caughtUp, func() {
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	}
}

// TestAppended: a line of a long session costs that line, neither the lines before nor a state of all of them, also
// when it replaces an answer of before, and also for a Deriver that has just begun.
func TestAppended(t *testing.T) {
	s := newShelf(t)
	const before, after = 400, 20
	line := func(i int) string { // two records of each answer, the second with more tokens
		return answerLine(i, fmt.Sprint("m", i/2), 1+i%2*8, textBlock(strings.Repeat("words ", 100)))
	}
	var lines []string
	for i := range before + 1 {
		lines = append(lines, line(i))
	}
	s.put("s", 0, 0, lines...)
	c := &counting{Derivable: s.Store}
	caughtUp, stop := s.running(c)
	caughtUp()
	whole := c.states
	c.lines, c.states = 0, 0
	for i := range after {
		s.put("s", 0, int64(before+1+i), line(before+1+i))
		caughtUp()
	}
	stop()
	if c.lines > after || c.states > whole {
		t.Errorf("for %d lines it read %d, and stored %d bytes of states; the first had %d", after, c.lines, c.states, whole)
	}
	c.lines = 0
	s.put("s", 0, int64(before+after+1), line(before+after+1))
	caughtUp, stop = s.running(c)
	caughtUp()
	stop()
	if c.lines > before/2 {
		t.Errorf("a Deriver that began reads %d lines for one", c.lines)
	}
	x := s.session("s")
	s.expect("answers", fmt.Sprint(x.Usage[0].Tokens.Answers, x.Usage[0].Tokens.Output), fmt.Sprint(211, 211*9))
	if x.Summary.Lines != before+after+2 || x.Summary.Messages == 0 {
		t.Errorf("%+v", x.Summary)
	}
}

// TestServedMeanwhile: while a session is derived again, its summary does not go back to its beginning.
func TestServedMeanwhile(t *testing.T) {
	s := newShelf(t)
	var lines []string
	for i := range 1200 {
		lines = append(lines, prompt(i, strings.Repeat("words ", 500)))
	}
	s.put("s", 0, 0, lines...)
	s.derive()
	kit.Must(t, s.Renew(t.Context(), derive.Format+1))
	c := &counting{Derivable: s.Store}
	caughtUp, stop := s.running(c)
	caughtUp()
	stop()
	if len(c.seen) < 3 {
		t.Fatalf("derived in %d steps", len(c.seen))
	}
	for i, x := range c.seen {
		if x.Prompts != 1200 {
			t.Errorf("after step %d it shows %d prompts of 1200", i, x.Prompts)
		}
	}
}
