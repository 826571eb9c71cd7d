package derive_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/store/sqlite"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// shelf is a store without a server, whose lines are derived when a test calls for it.
type shelf struct {
	*testing.T
	*sqlite.Store
	watch func(*server.Derivation) // sees what is saved
}

// watched lets a test see what is saved.
type watched struct {
	derive.Derivable
	see func(*server.Derivation)
}

func (w watched) SaveDerived(ctx context.Context, list ...*server.Derivation) error {
	for _, d := range list {
		if w.see != nil {
			w.see(d)
		}
	}
	return w.Derivable.SaveDerived(ctx, list...)
}

func newShelf(t *testing.T) shelf {
	t.Helper()
	st := kit.Try(sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "server.db"), sqlstore.Opening{})).Must(t)
	t.Cleanup(func() { kit.Should(t, st.Close()) })
	return shelf{T: t, Store: st}
}

var noon = time.Date(2026, 8, 20, 12, 0, 0, 0, time.UTC)

// put stores lines of a generation from line first on.
func (s shelf) put(session string, generation, first int64, lines ...string) {
	s.Helper()
	b := &server.Batch{Owner: 1, Received: noon, Head: server.Head{
		SessionID: session, Machine: "m", Epoch: "e", Generation: generation, RewoundTo: first, EndLine: first, EOFNewline: true,
	}}
	if generation == 0 {
		b.Head.RewoundTo = 0
	}
	if parent, _, ok := strings.Cut(session, "/"); ok {
		b.Head.Parent = parent
	}
	for i, l := range lines {
		kind := server.Object
		if !strings.HasPrefix(l, "{") || strings.Contains(l, "}{") {
			kind = server.Opaque
		}
		b.Lines = append(b.Lines, server.Line{Index: first + int64(i), Kind: kind, Raw: []byte(l)})
		b.Head.EndLine = first + int64(i) + 1
	}
	kit.Must(s.T, s.Put(s.Context(), b))
}

// derive runs a Deriver until nothing lags.
func (s shelf) derive() {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error)
	go func() { ended <- (&derive.Deriver{Store: watched{s.Store, s.watch}}).Run(ctx) }()
	for {
		n := kit.Try(s.Lag(s.Context())).Must(s.T)
		if n == 0 {
			break
		}
	}
	cancel()
	kit.Must(s.T, <-ended)
}

func (s shelf) session(name string) server.FoundSession {
	s.Helper()
	found := kit.Try(s.Find(s.Context(), server.Scope{All: true}, server.SessionQuery{Page: server.Page{Limit: 50}, Agents: true})).Must(s.T)
	i := slices.IndexFunc(found.List, func(x server.FoundSession) bool { return x.SessionID == name })
	kit.Require(s, i >= 0, "session %s is not there", name)
	return found.List[i]
}

// hits is what a search finds, as "session generation.line kind", in order of their times, the oldest first; with "-"
// what the newest view does not show.
func (s shelf) hits(text string) string {
	s.Helper()
	hits := kit.Try(s.Search(s.Context(), server.Scope{All: true}, server.SearchQuery{Text: text, Superseded: true, Limit: 500})).Must(s.T)
	var out []string
	for _, h := range hits.List {
		gone := ""
		if !h.Current {
			gone = "-"
		}
		out = append(out, fmt.Sprintf("%s%s %d.%d %s", gone, h.Session.SessionID, h.Generation, h.Line, h.Kind))
	}
	slices.Reverse(out)
	return strings.Join(out, ", ")
}

func (s shelf) expect(what, got, want string) {
	s.Helper()
	if got != want {
		s.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// stamp is a record's time: minute by minute.
func stamp(minute int) string {
	return noon.Add(time.Duration(minute) * time.Minute).Format(time.RFC3339)
}

func prompt(n int, text string) string {
	return fmt.Sprintf(`{"type":"user","uuid":"u%d","timestamp":%q,"cwd":"/w","gitBranch":"main","version":"2.1.0","message":{"role":"user","content":%q}}`,
		n, stamp(n), text)
}

func answerLine(n int, id string, output int, blocks string) string {
	return fmt.Sprintf(`{"type":"assistant","uuid":"a%d","timestamp":%q,"requestId":"r%s","message":{"id":%q,"model":"claude-x","role":"assistant","content":[%s],"usage":{"input_tokens":10,"output_tokens":%d,"cache_read_input_tokens":100,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20}}}}`,
		n, stamp(n), id, id, blocks, output)
}

func textBlock(s string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, s) }

func result(n int, id, text string, failed bool) string {
	return fmt.Sprintf(`{"type":"user","uuid":"t%d","timestamp":%q,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"is_error":%v,"content":%q}]}}`,
		n, stamp(n), id, failed, text)
}

// taken is a store of which others have leased what lags.
type taken struct {
	derive.Derivable
	lag    int64
	looked atomic.Int64
}

func (s *taken) Changes(context.Context) (<-chan server.Change, error) {
	return make(chan server.Change), nil
}
func (s *taken) Renew(context.Context, int64) error { return nil }
func (s *taken) Lag(context.Context) (int64, error) { return s.lag, nil }

func (s *taken) Lagging(context.Context, int) ([]server.Task, error) {
	s.looked.Add(1)
	return nil, nil
}

// TestLeaseOfOneThatIsGone: while others have leased what lags, a deriver looks often enough to take it over soon after
// the lease has ended, though nothing comes meanwhile. It rests when nothing lags.
func TestLeaseOfOneThatIsGone(t *testing.T) {
	for lag, want := range map[int64][2]int64{0: {1, 2}, 1: {10, 20}} {
		synctest.Test(t, func(t *testing.T) {
			s := &taken{lag: lag}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			kit.Should(t, (&derive.Deriver{Store: s, Workers: 1}).Run(ctx))
			if n := s.looked.Load(); n < want[0] || n > want[1] {
				t.Errorf("while %d lag it looked %d times in a minute, want %d to %d", lag, n, want[0], want[1])
			}
		})
	}
}

// TestRest: lines that come while their stream rests are derived soon after, though nothing comes after them.
func TestRest(t *testing.T) {
	s := newShelf(t)
	for i := range 150 { // so many that some workers lease as many as make streams rest
		s.put(fmt.Sprint("s", i), 0, 0, prompt(0, "one"))
	}
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		rests := ""
		see := func(d *server.Derivation) {
			mu.Lock()
			defer mu.Unlock()
			if d.Rest > 0 {
				rests = d.Task.SessionID
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- (&derive.Deriver{Store: watched{s.Store, see}}).Run(ctx) }()
		settle := func() {
			for {
				n := kit.Try(s.Lag(ctx)).Must(t)
				if n == 0 {
					return
				}
				time.Sleep(100 * time.Millisecond) //nolint:forbidigo // inside testing/synctest: the time is not real
			}
		}
		settle()
		mu.Lock()
		last := rests
		mu.Unlock()
		kit.Require(t, last != "", "no stream rests")
		began := time.Now()
		s.put(last, 0, 1, prompt(1, "two"))
		settle()
		took := time.Since(began)
		kit.Check(t, took <= 10*time.Second, "derived after %s", took)
		cancel()
		kit.Should(t, <-ended)
	})
}

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
			n = kit.Try(s.Lag(s.Context())).Must(s)
		}
	}
	return caughtUp, func() {
		cancel()
		kit.Should(s, <-ended)
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
	kit.Check(t, c.lines <= after && c.states <= whole,
		"for %d lines it read %d, and stored %d bytes of states; the first had %d", after, c.lines, c.states, whole)
	c.lines = 0
	s.put("s", 0, int64(before+after+1), line(before+after+1))
	caughtUp, stop = s.running(c)
	caughtUp()
	stop()
	kit.Check(t, c.lines <= before/2, "a Deriver that began reads %d lines for one", c.lines)
	x := s.session("s")
	s.expect("answers", fmt.Sprint(x.Usage[0].Tokens.Answers, x.Usage[0].Tokens.Output), fmt.Sprint(211, 211*9))
	kit.Check(t, x.Summary.Lines == before+after+2 && x.Summary.Messages != 0, "%+v", x.Summary)
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
	kit.Require(t, len(c.seen) >= 3, "derived in %d steps", len(c.seen))
	for i, x := range c.seen {
		kit.Equal(t, fmt.Sprintf("after step %d: prompts", i), x.Prompts, 1200)
	}
}
