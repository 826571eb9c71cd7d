package derive_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/transcript"
)

// TestLongContext: the store and the price list mean the same by it.
func TestLongContext(t *testing.T) {
	kit.Equal(t, "tokens of a long context", server.LongContext, transcript.LongContext)
	u := server.Tokens{Input: 1_000_000}
	short, long := server.UsageRow{Model: "claude-sonnet-4-5", Tokens: u}, server.UsageRow{Model: "claude-sonnet-4-5", Long: true, Tokens: u}
	kit.Equal(t, "$", derive.CostOfAll(transcript.DefaultPrices(), []server.UsageRow{short, long}).USD, 3+6)
}

// TestDerive: facts, texts and answers of one conversation.
func TestDerive(t *testing.T) {
	s := newShelf(t)
	s.put("s", 0, 0,
		prompt(0, "needle: fix the cart"),
		answerLine(1, "m1", 1, `{"type":"thinking","thinking":"needle, hm"}`),
		answerLine(2, "m1", 40, textBlock("needle, I will")+`,{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"grep needle","description":"look"}}`),
		result(3, "t1", "needle: not found", true),
		`{"type":"ai-title","aiTitle":"Needle work"}`,
		answerLine(5, "m2", 7, textBlock("Fixed.")),
		"",
		`{"type":"summary","summary":"glued needle"}{"type":"system","subtype":"away_summary","content":"second needle"}`,
		`{"type":"api-request-blob","message":{"role":"user","content":"needle again"}}`,
		answerLine(8, "m2", 7, textBlock("part one")+","+textBlock("part two")),
	)
	s.derive()
	s.expect("two blocks", s.hits(`"part one part two"`), "s 0.9 answer")
	s.expect("texts", s.hits("needle"), "s 0.0 prompt, s 0.1 thinking, s 0.2 answer, s 0.2 tool, s 0.3 result, "+
		"s 0.4 title, s 0.7 other, s 0.7 title")
	x := s.session("s")
	f := x.Summary
	s.expect("facts", fmt.Sprint(f.Title, "|", f.FirstPrompt, "|", f.Model, f.Models, f.Branch, f.Version, f.Started.Equal(noon),
		f.Ended.Equal(noon.Add(8*time.Minute)), f.Prompts, f.Messages, f.Tools, f.Errors, f.Context, f.Window, f.Lines),
		"Needle work|needle: fix the cart|claude-x[claude-x]main2.1.0true true 1 3 1 1 140 200000 10")
	s.expect("usage", fmt.Sprintf("%+v", x.Usage[0].Tokens),
		"{Answers:2 Input:20 Output:47 CacheRead:200 CacheWrite5m:20 CacheWrite1h:40 Searches:0}")
}

// TestDeriveOn: in pieces it comes to the same as at once.
func TestDeriveOn(t *testing.T) {
	s := newShelf(t)
	lines := []string{prompt(0, "one"), answerLine(1, "m1", 1, textBlock("two")), answerLine(2, "m1", 9, textBlock("three")), prompt(3, "four")}
	for i, l := range lines {
		s.put("pieces", 0, int64(i), l)
		s.derive()
	}
	s.put("whole", 0, 0, lines...)
	s.derive()
	a, b := s.session("pieces"), s.session("whole")
	kit.Check(t, fmt.Sprint(a.Summary) == fmt.Sprint(b.Summary), "in pieces %+v\nat once %+v", a.Summary, b.Summary)
	s.expect("copies count once", fmt.Sprint(len(a.Usage), a.Usage[0].Tokens.Output, len(b.Usage)), "1 9 0")
	for _, word := range []string{"one", "two", "three", "four"} {
		kit.Equal(t, word+" is found times", strings.Count(s.hits(word), " 0."), 2)
	}
}

// TestDeriveProgress: an answer that only a progress record has counts; one that its agent's transcript has too
// counts once.
func TestDeriveProgress(t *testing.T) {
	s := newShelf(t)
	progress := func(n int, id string) string {
		return fmt.Sprintf(`{"type":"progress","uuid":"p%d","data":{"type":"agent_progress","message":%s}}`, n,
			answerLine(n, id, 5, textBlock("inside")))
	}
	s.put("s", 0, 0, prompt(0, "one"), answerLine(1, "m1", 1, textBlock("two")), progress(2, "agent1"), progress(3, "agent2"))
	s.put("s/agent-a", 0, 0, answerLine(0, "agent2", 5, textBlock("inside")))
	s.derive()
	output := func(name string) string {
		var n []int64
		for _, u := range s.session(name).Usage {
			n = append(n, u.Tokens.Answers, u.Tokens.Output)
		}
		return fmt.Sprint(n)
	}
	s.expect("the session with its agent", output("s"), "[3 11]")
	s.expect("the agent", output("s/agent-a"), "[1 5]")
	s.expect("messages", fmt.Sprint(s.session("s").Summary.Messages), "2")
}

// TestDeriveFork: an answer counts for the session that it was given in, also when a fork of it came first.
func TestDeriveFork(t *testing.T) {
	s := newShelf(t)
	first := answerLine(1, "m1", 5, textBlock("hello"))
	s.put("fork", 0, 0, strings.Replace(first, `"type"`, `"sessionId":"fork","requestSessionId":"parent","type"`, 1), answerLine(2, "m2", 7, textBlock("on")))
	s.derive()
	s.put("parent", 0, 0, first)
	s.derive()
	for name, want := range map[string]int64{"parent": 5, "fork": 7} {
		usage := s.session(name).Usage
		kit.Check(t, len(usage) == 1 && usage[0].Tokens.Output == want && usage[0].Tokens.Answers == 1,
			"%s: %+v, want %d", name, usage, want)
	}
}

// TestDeriveGateway: without a request id an answer is known within its session, its agents' transcripts and copies that
// name it included.
func TestDeriveGateway(t *testing.T) {
	s := newShelf(t)
	line := func(n int, more string) string {
		return strings.Replace(answerLine(n, "m1", 5, textBlock("hello")), `"requestId":"rm1",`, more, 1)
	}
	s.put("one", 0, 0, line(0, ""), line(1, ""))
	s.put("one/agent-a", 0, 0, line(0, ""))
	s.put("two", 0, 0, line(0, ""))
	s.derive()
	s.put("three", 0, 0, line(0, `"sessionId":"one",`), line(1, `"sessionId":"one",`), line(2, `"sessionId":"three",`))
	s.derive()
	var answers []int64
	for _, name := range []string{"one", "one/agent-a", "two", "three"} {
		n := int64(0)
		for _, u := range s.session(name).Usage {
			n += u.Tokens.Answers
		}
		answers = append(answers, n)
	}
	s.expect("answers", fmt.Sprint(answers), "[1 0 1 1]")
}

// TestDeriveHuge: a line longer than anything else is found by its beginning, and many steps make one whole.
func TestDeriveHuge(t *testing.T) {
	s := newShelf(t)
	lines := []string{prompt(0, "head needle "+strings.Repeat("filler ", 1<<20)+" tail")}
	for i := 1; i < 1200; i++ {
		lines = append(lines, prompt(i, fmt.Sprintf("number%d %s", i, strings.Repeat("words ", 500))))
	}
	s.put("s", 0, 0, lines...)
	s.watch = func(d *server.Derivation) {
		text, longest := 0, 0
		for _, x := range d.Texts {
			text, longest = text+len(x.Text), max(longest, len(x.Text))
		}
		kit.Check(t, longest <= 256<<10 && text-longest <= 1<<20, "a step has %d bytes of text, one of them %d", text, longest)
	}
	s.derive()
	s.expect("head", s.hits("needle"), "s 0.0 prompt")
	s.expect("tail", s.hits("tail"), "")
	s.expect("last", s.hits("number1199"), "s 0.1199 prompt")
	s.expect("prompts", fmt.Sprint(s.session("s").Summary.Prompts), "1200")
}

// flaky fails where a test sets it to. Several workers use it at once.
type flaky struct {
	derive.Derivable
	mu   sync.Mutex
	fail map[string]int // calls that fail from now on; guarded by mu
}

var errFlaky = errors.New("made to fail")

func (f *flaky) broken(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail[name]--
	return f.fail[name] >= 0
}

func (f *flaky) Renew(ctx context.Context, format int64) error {
	if f.broken("renew") {
		return errFlaky
	}
	return f.Derivable.Renew(ctx, format)
}

func (f *flaky) Lagging(ctx context.Context, n int) ([]server.Task, error) {
	if f.broken("lagging") {
		return nil, errFlaky
	}
	return f.Derivable.Lagging(ctx, n)
}

func (f *flaky) SaveDerived(ctx context.Context, list ...*server.Derivation) error {
	if f.broken("save") {
		return errFlaky
	}
	return f.Derivable.SaveDerived(ctx, list...)
}

// TestDeriveRenewed: what an older version derived is derived again by itself.
func TestDeriveRenewed(t *testing.T) {
	s := newShelf(t)
	s.put("s", 0, 0, prompt(0, "needle"))
	tasks, err := s.Lagging(t.Context(), 1)
	kit.Require(t, err == nil && len(tasks) == 1, "%v %v", tasks, err)
	snap := kit.Try(s.View(t.Context(), server.Scope{All: true}, server.Ref{Stream: tasks[0].Stream})).Must(t)
	old := &server.Derivation{Task: tasks[0], Position: server.Position{Epoch: snap.Epochs()[0].ID, Line: 1}, Format: derive.Format - 1, Done: true}
	snap.Close()
	kit.Must(t, s.SaveDerived(t.Context(), old))
	s.expect("before", s.hits("needle"), "")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- (&derive.Deriver{Store: s.Store}).Run(ctx) }()
	for s.hits("needle") == "" {
	}
	cancel()
	kit.Should(t, <-ended)
	s.expect("after", s.hits("needle"), "s 0.0 prompt")
}

// TestDeriveState: a state that can't be read costs reading, nothing else.
func TestDeriveState(t *testing.T) {
	s := newShelf(t)
	s.put("s", 0, 0, prompt(0, "one"), prompt(1, "two"))
	s.derive()
	db := kit.Try(sql.Open("sqlite", "file:"+s.Path())).Must(t)
	kit.Try(db.Exec(`UPDATE folds SET state = x'00ff'`)).Must(t)
	kit.Must(t, db.Close())
	s.put("s", 0, 2, prompt(2, "three"))
	s.derive()
	s.expect("prompts", fmt.Sprint(s.session("s").Summary.Prompts), "3")
	s.expect("texts", s.hits("two")+s.hits("three"), "s 0.1 prompts 0.2 prompt")
}

// TestDeriveFailures: whatever fails is tried again, and what is there in the end is whole.
func TestDeriveFailures(t *testing.T) {
	for _, call := range []string{"renew", "lagging", "save"} {
		t.Run(call, func(t *testing.T) {
			s := newShelf(t)
			s.put("a", 0, 0, prompt(0, "needle"))
			s.put("b", 0, 0, prompt(1, "needle"))
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				fails := &flaky{Derivable: s.Store, fail: map[string]int{call: 1}}
				ended := make(chan error)
				go func() { ended <- (&derive.Deriver{Store: fails}).Run(ctx) }()
				for {
					n := kit.Try(s.Lag(ctx)).Must(t)
					if n == 0 {
						break
					}
					time.Sleep(time.Second) //nolint:forbidigo // inside testing/synctest: the time is not real
				}
				cancel()
				kit.Should(t, <-ended)
			})
			s.expect("texts", s.hits("needle"), "a 0.0 prompt, b 0.0 prompt")
		})
	}
}

// TestOrigin: a fork names its origin, or shares its first answers with it.
func TestOrigin(t *testing.T) {
	s := newShelf(t)
	first := []string{prompt(0, "one"), answerLine(1, "m1", 1, textBlock("two"))}
	s.put("first", 0, 0, first...)
	s.derive()
	s.put("copy", 0, 0, append(first, prompt(2, "three"), answerLine(3, "m3", 1, textBlock("four")))...)
	s.put("named", 0, 0, strings.Replace(answerLine(1, "m9", 1, textBlock("two")), `"type"`, `"sessionId":"named","requestSessionId":"elsewhere","type"`, 1))
	s.put("alone", 0, 0, prompt(5, "alone"), answerLine(6, "m6", 1, textBlock("x")))
	s.derive()
	for session, want := range map[string]string{"first": "", "copy": "first", "named": "elsewhere", "alone": ""} {
		snap := kit.Try(s.View(t.Context(), server.Scope{All: true}, server.Ref{SessionID: session})).Must(t)
		fold, at, err := derive.FoldOf(t.Context(), snap)
		if err != nil || at.Line != snap.Session().Lines || fold.Summary().Prompts+fold.Summary().Answers != at.Line {
			t.Errorf("%s is folded up to %+v: %+v, %v", session, at, fold.Summary(), err)
		}
		kit.Equal(t, session+" comes from", kit.Try(derive.Origin(t.Context(), snap)).Must(t), want)
		kit.Should(t, snap.Close())
	}
}
