package derive

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// Lines are watched if they are written while a daemon runs, once: not what was there before, not what is read again.
func TestWatched(t *testing.T) {
	h, r := newHarness(t), &recorder{}
	a, b := chat{Session: sessionA}, chat{Session: sessionB}
	h.write(sessionA, a.Prompt("old"))
	h.startAndSync(r)
	h.expect(r, "an import")
	h.messages(sessionA)
	h.expect(r, "a question about history", "old")
	h.send(sessionA, a.Answer("new"))
	h.expect(r, "a line", "new!")
	h.send(sessionB, b.Prompt("born"))
	h.expect(r, "a new file", "born!")
	h.stop()
	h.startAndSync(r)
	h.messages(sessionA)
	h.messages(sessionB)
	h.expect(r, "a restart")
	h.stop()
	h.write(sessionA, a.Prompt("meanwhile"))
	h.write(sessionC, (&chat{Session: sessionC}).Prompt("unseen"))
	h.startAndSync(r)
	h.expect(r, "what a watched session got while no daemon ran", "meanwhile!")
	h.messages(sessionC)
	h.expect(r, "a session that came while no daemon ran", "unseen")
}

// Lines that were watched and not saved are watched again after a crash; those that were saved are not.
func TestWatchedOverCrash(t *testing.T) {
	h, r := newHarness(t), &recorder{}
	a := chat{Session: sessionA}
	h.start(r)
	h.sync() // has listed everything once
	h.send(sessionA, a.Prompt("one"))
	h.send(sessionA, a.Prompt("two"))
	h.expect(r, "two lines", "one!", "two!")
	h.stop()
	h.emptyState("projections", "folds") // as if nothing had been stored since
	h.startAndSync(r)
	h.expect(r, "nothing was stored", "one!", "two!")
	h.stop()
	h.emptyState("folds") // as the bound on their size does
	h.startAndSync(r)
	h.messages(sessionA)
	h.expect(r, "the fold was dropped, not the place", "one", "two")
	h.send(sessionA, a.Prompt("three"))
	h.expect(r, "behind the place", "three!")
}

// History that a fork copied is not watched, though the file is new: its records say whose they are, or only its answers do.
func TestCopiesAreNotWatched(t *testing.T) {
	h, r := newHarness(t), &recorder{}
	h.startAndSync(r)
	a := chat{Session: sessionA}
	forked := func(key string, value any, kind, text string) string {
		block := []any{map[string]any{"type": "text", "text": text}}
		m := map[string]any{"type": kind, "message": map[string]any{"role": kind, "content": block}}
		if kind == "assistant" {
			m["message"] = map[string]any{"id": text, "role": kind, "model": "m", "content": block}
		}
		if key != "" {
			m[key] = value
		}
		return a.Record(m)
	}
	origin := map[string]any{"sessionId": sessionB, "messageUuid": "x"}
	h.write(sessionA, forked("forkedFrom", origin, "user", "theirs")+forked("forkedFrom", origin, "assistant", "theirs too")+
		forked("requestSessionId", sessionB, "assistant", "an answer of theirs")+forked("", nil, "user", "follows a copy")+
		forked("requestSessionId", sessionA, "assistant", "own")+forked("", nil, "user", "mine"))
	h.sync()
	h.expect(r, "a fork", "theirs", "theirs too", "an answer of theirs", "follows a copy", "own!", "mine!")
}

// A rewrite inside what was watched is watched from where it differs; one of what was there before is history.
func TestWatchedAfterRewrite(t *testing.T) {
	h, r := newHarness(t), &recorder{}
	a, b := chat{Session: sessionA}, chat{Session: sessionB}
	h.write(sessionB, b.Prompt("old"))
	h.startAndSync(r)
	one := a.Prompt("one")
	two := a.Answer("two")
	h.send(sessionA, one)
	h.send(sessionA, two)
	h.expect(r, "as written", "one!", "two!")
	fork := chat{Session: sessionA, Leaf: "", N: 10}
	h.rewrite(sessionA, one+fork.Answer("TWO"))
	h.sync()
	h.expect(r, "rewritten from nothing that is marked", "one!", "TWO!")
	h.send(sessionB, b.Answer("more"))
	h.expect(r, "as written", "old", "more!")
	other := chat{Session: sessionB}
	h.rewrite(sessionB, other.Prompt("OLD")+other.Answer("MORE"))
	h.sync()
	h.expect(r, "history rewritten")
	h.send(sessionB, other.Prompt("next"))
	h.expect(r, "after it", "OLD", "MORE", "next!")
}

// Delivering everything again, to another server, is not news.
func TestRedeliveredIsNotWatched(t *testing.T) {
	h, r := newHarness(t), &recorder{}
	a := chat{Session: sessionA}
	h.startAndSync(r)
	h.send(sessionA, a.Prompt("one"))
	h.expect(r, "as written", "one!")
	h.redelivered = true
	h.tailer.Reread(h.id(sessionA))
	h.sync()
	h.expect(r, "delivered again")
	h.redelivered = false
	h.send(sessionA, a.Prompt("two"))
	h.expect(r, "after it", "one", "two!")
}

// Many files at once were put there: they are history, what is written behind is not; looking for copies is bounded.
func TestManyAppearAtOnce(t *testing.T) {
	h, r := newHarness(t), &recorder{}
	h.startAndSync(r)
	var chats []*chat
	for n := range 4 * maxBurstSize {
		c := &chat{Session: fmt.Sprintf("%08x-0000-4000-8000-000000000000", n+1)}
		chats = append(chats, c)
		h.write(c.Session, c.Turn(30_000))
	}
	h.sync()
	watched := 0
	for _, text := range r.take() {
		if strings.HasSuffix(text, "!") && strings.HasPrefix(text, "prompt") {
			watched++
		}
	}
	// twice, because the burst may take longer than burstTime
	kit.Check(t, watched <= 2*maxBurstSize, "%d of %d files that appeared at once are watched", watched, len(chats))
	last := chats[len(chats)-1]
	h.send(last.Session, last.Prompt("behind"))
	kit.Equal(t, "what is written behind", r.last(), "behind!")
}

func TestWatch(t *testing.T) {
	at := func(offset int64) tail.Cursor { return tail.Cursor{Offset: offset} }
	chunk := func(prev, from, to, before, size int64) *tail.Chunk {
		c := &tail.Chunk{Prev: at(prev), From: at(from), To: at(to), Before: before}
		c.File.Stat.Size = size
		return c
	}
	watched := func(from int64) state.Routing { return state.Routing{Watched: true, WatchedFrom: from} }
	for name, x := range map[string]struct {
		was         state.Routing
		chunk       *tail.Chunk
		redelivered bool
		want        state.Routing
	}{
		"history":                      {state.Routing{}, chunk(0, 0, 50, 100, 100), false, state.Routing{}},
		"the end of history":           {state.Routing{}, chunk(50, 50, 100, 100, 100), false, state.Routing{}},
		"history and what came since":  {state.Routing{}, chunk(50, 50, 120, 100, 120), false, watched(100)},
		"a new file":                   {state.Routing{}, chunk(0, 0, 50, 0, 50), false, watched(0)},
		"a line":                       {state.Routing{}, chunk(100, 100, 120, 0, 120), false, watched(100)},
		"a line more":                  {watched(100), chunk(120, 120, 130, 0, 130), false, watched(100)},
		"a rewrite of what is watched": {watched(100), chunk(130, 110, 140, 0, 150), false, watched(100)},
		"a rewrite of history":         {watched(100), chunk(130, 90, 140, 0, 150), false, watched(150)},
		"history cut to nothing":       {watched(100), chunk(130, 0, 0, 0, 0), false, watched(130)},
		"a rewrite, never watched":     {state.Routing{}, chunk(130, 90, 140, 0, 150), false, state.Routing{WatchedFrom: 150}},
		"more of that rewrite":         {state.Routing{WatchedFrom: 150}, chunk(140, 140, 150, 0, 150), false, state.Routing{WatchedFrom: 150}},
		"behind that rewrite":          {state.Routing{WatchedFrom: 150}, chunk(140, 140, 160, 0, 160), false, watched(150)},
		"delivered again":              {watched(100), chunk(130, 0, 130, 0, 130), true, watched(130)},
	} {
		got := x.was
		watch(&got, x.chunk, x.redelivered)
		kit.Same(t, name, cmp.Diff(x.want, got))
	}
}
