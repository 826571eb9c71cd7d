package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state"
)

// watching starts a daemon and waits until it has seen what there is: what is written from then on is watched.
func (w *world) watching() {
	w.t.Helper()
	w.deliver()
}

func watchingWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.watching()
	return w
}

func (w *world) checkpoints(session string) []control.Checkpoint {
	w.t.Helper()
	a := kit.Try(w.client.Checkpoints(context.Background(), control.CheckpointsQuery{Session: session})).Must(w.t)
	return a.Checkpoints
}

// triggers are a session's checkpoints, oldest first.
func (w *world) triggers(session string) string {
	w.t.Helper()
	var out []string
	for _, c := range w.checkpoints(session) {
		out = append(out, fmt.Sprintf("%s@%d", c.TriggerType, c.TokensUsed))
	}
	slices.Reverse(out)
	return strings.Join(out, " ")
}

func (w *world) handed(session string) control.Pending {
	w.t.Helper()
	p := kit.Try(w.client.Pending(context.Background(), control.PendingRequest{Session: session, Event: "UserPromptSubmit"})).Must(w.t)
	return p
}

// allPending takes a session's notices until there are none, as its hooks do.
func (w *world) allPending(session string, want int) (text string) {
	w.t.Helper()
	n := 0
	w.until(fmt.Sprintf("%d notices are handed over", want), func() bool {
		p := w.handed(session)
		n, text = n+p.Notices, strings.TrimPrefix(text+"\n"+p.Text, "\n")
		return n >= want
	})
	p := w.handed(session)
	kit.Check(w.t, n == want && p.Notices == 0 && p.Text == "", "%d notices, want %d, and then %+v", n, want, p)
	return strings.TrimRight(text, "\n")
}

// checkpointServer keeps the checkpoints that it is sent.
func (w *world) checkpointServer() (sent func() []sentCheckpoint) {
	w.t.Helper()
	return keepCheckpoints(w.t, w.server, true)
}

// From 60 % over 82 and 91 to a compaction: exactly three checkpoints, shown once each and in order, and sent.
func TestCheckpoints(t *testing.T) {
	w := newWorld(t)
	sent := w.checkpointServer()
	w.watching()
	c := kit.Chat{Session: sessionA}
	for _, text := range []string{c.Turn(100_200), c.Turn(136_940), c.Turn(151_970), c.Compaction(), c.Turn(30_000)} {
		w.send(transcriptOf(sessionA), text)
	}
	if got, want := w.triggers(sessionA), "auto_80@136940 auto_90@151970 compact@160000"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	list := w.checkpoints(sessionA[:8])
	want := []string{
		"💾 [ccship] Automatic checkpoint made (82% of the token budget used)\n   Checkpoint: " + list[2].ID + "\n   After a compaction the work can be recovered from here",
		"⚠️ [ccship] Token budget nearly used up (91%)\n   💡 Finish the current work and continue in a new session.\n   📋 The checkpoint_list tool lists the checkpoints (" + list[1].ID + ")",
		"💾 [ccship] The conversation was compacted\n   Checkpoint: " + list[0].ID + "\n   The checkpoint_get tool shows the work before it",
	}
	kit.Same(t, "told", cmp.Diff(strings.Join(want, "\n"), w.allPending(sessionA, 3)))
	w.until("the server has them", func() bool { return len(sent()) == 3 })
	var item map[string]any
	kit.Must(t, json.Unmarshal([]byte(sent()[0].text), &item))
	delete(item, "context_hash")
	wantItem := map[string]any{
		"id": list[2].ID, "session_id": sessionA, "tokens_used": 136_940.0, "token_budget": 167_000.0, "trigger_type": "auto_80",
		"summary": list[2].Summary, "active_files": []any{}, "created_at": "2026-08-20T09:00:04Z", "generation": 0.0, "line": 3.0,
	}
	kit.Same(t, "sent", cmp.Diff(wantItem, item))
	if one, err := w.client.Checkpoint(t.Context(), list[2].ID); err != nil || !cmp.Equal(one.Checkpoint, list[2]) || len(list[2].ContextHash) != 16 {
		t.Errorf("%+v, err %v", one, err)
	}
	_, err := w.client.Checkpoint(t.Context(), "cp-000000000000")
	kit.Check(t, code(err) == control.CodeNoCheckpoint, "no such checkpoint: %v", err)
}

func code(err error) string {
	if e, ok := errors.AsType[*control.Error](err); ok {
		return e.Code
	}
	return fmt.Sprint(err)
}

// An import only makes the marks of compactions, without a word; what passes the budget later counts from there.
func TestCheckpointsOfHistory(t *testing.T) {
	w := newWorld(t)
	c, other := kit.Chat{Session: sessionA}, kit.Chat{Session: sessionB}
	w.write(transcriptOf(sessionA), c.Turn(140_000)+c.Compaction()+c.Turn(140_000))
	w.write(transcriptOf(sessionB), other.Turn(160_000))
	w.write("-home-kim-shop/"+sessionA+"/subagents/agent-a1.jsonl", strings.ReplaceAll(c.Compaction(), `"isSidechain":false`, `"isSidechain":true,"agentId":"a1"`))
	w.watching()
	kit.Equal(t, "the import made", w.triggers(""), "compact@160000")
	kit.Equal(t, "a question made", w.triggers(sessionB), "")
	w.write(transcriptOf(sessionA), c.Turn(141_000)+c.Turn(152_000))
	w.send(transcriptOf(sessionB), other.Turn(161_000))
	kit.Equal(t, "got", w.triggers(sessionA), "compact@160000 auto_90@152000")
	kit.Equal(t, "what was passed before it was watched made", w.triggers(sessionB), "")
	if text := w.allPending(sessionA, 1); !strings.Contains(text, "(95%)") { // of the 160 000 where it compacted
		t.Errorf("told %q", text)
	}
	p := w.handed(sessionB)
	kit.Check(t, p.Notices == 0, "the other session is told %+v", p)
}

// A daemon that stops in the middle makes nothing twice, and what it had to say is said by the next one.
func TestCheckpointsOverRestart(t *testing.T) {
	w := newWorld(t)
	w.cfg.Locale = "ko"
	sent := w.checkpointServer()
	c := kit.Chat{Session: sessionA}
	for _, text := range []string{c.Turn(100_000), c.Turn(140_000), c.Turn(141_000), c.Turn(155_000), c.Turn(156_000)} {
		w.watching()
		w.send(transcriptOf(sessionA), text)
		w.stop()
	}
	w.watching()
	if got, want := w.triggers(sessionA), "auto_80@140000 auto_90@155000"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	list := w.checkpoints(sessionA)
	want := "💾 [ccship] 자동 체크포인트 생성됨 (토큰 사용량 83%)\n   체크포인트: " + list[1].ID + "\n   Compact 발생 시 이 시점으로 복구 가능\n" +
		"⚠️ [ccship] 토큰 사용량 위험 수준 (92%)\n   💡 현재 작업을 마무리하고 새 세션으로 분리하는 것을 권장합니다.\n   📋 checkpoint_list 도구로 체크포인트 확인 가능 (" + list[0].ID + ")"
	kit.Same(t, "told", cmp.Diff(want, w.allPending(sessionA, 2)))
	w.stop()
	w.watching()
	p := w.handed(sessionA)
	kit.Check(t, p.Notices == 0, "told again after a restart: %+v", p)
	if len(sent()) != 2 {
		t.Errorf("sent: %v", sent())
	}
}

// What is read again makes nothing anew: a file that was cut and has grown again, and one whose fold was lost.
func TestCheckpointsOfARewrite(t *testing.T) {
	w := newWorld(t)
	sent := w.checkpointServer()
	w.watching()
	c := kit.Chat{Session: sessionA}
	begin := c.Turn(100_000) + c.Turn(140_000)
	w.send(transcriptOf(sessionA), begin+c.Turn(155_000)+c.Turn(156_000))
	w.allPending(sessionA, 2)
	w.rewrite(transcriptOf(sessionA), begin)
	w.sync()
	kit.Equal(t, "after the cut", w.triggers(sessionA), "auto_80@140000 auto_90@155000")
	other := c
	other.Session = strings.Replace(sessionA, sessionA[:1], "e", 1) // further uuids
	w.send(transcriptOf(sessionA), strings.ReplaceAll(other.Turn(157_000), other.Session, sessionA))
	kit.Equal(t, "on the new way", w.triggers(sessionA), "auto_80@140000 auto_90@155000 auto_90@157000")
	w.allPending(sessionA, 1)
	w.until("the server has them", func() bool { return len(sent()) == 3 })
}

// A fork's copied lines are no news, but that it was compacted; what comes after them is.
func TestCheckpointsOfAFork(t *testing.T) {
	w := watchingWorld(t)
	c := kit.Chat{Session: sessionA}
	lines := c.Turn(100_000) + c.Turn(140_000) + c.Compaction() + c.Turn(130_000)
	w.send(transcriptOf(sessionA), lines)
	fork := c
	fork.Session = sessionB
	copied := strings.ReplaceAll(strings.ReplaceAll(lines, `"sessionId":"`+sessionA, `"sessionId":"`+sessionB),
		`"type":"`, `"forkedFrom":{"sessionId":"`+sessionA+`"},"type":"`)
	w.send(transcriptOf(sessionB), copied+fork.Turn(131_000)+fork.Turn(152_000))
	kit.Equal(t, "the original has", w.triggers(sessionA), "auto_80@140000 compact@160000 auto_80@130000")
	kit.Equal(t, "the fork has", w.triggers(sessionB), "compact@160000 auto_90@152000")
	w.allPending(sessionA, 3)
	w.allPending(sessionB, 1)
}

// What is asked for is made at once, durable, and of the session as it stands.
func TestCreateCheckpoint(t *testing.T) {
	w := newWorld(t)
	sent := w.checkpointServer()
	c := kit.Chat{Session: sessionA}
	w.write(transcriptOf(sessionA), c.Turn(140_000))
	w.write("-home-kim-shop/"+sessionA+"/subagents/agent-a1.jsonl", c.Prompt("task"))
	w.watching()
	create := func(req control.CheckpointRequest) (control.Checkpoint, error) {
		a, err := w.client.CreateCheckpoint(t.Context(), req)
		return a.Checkpoint, err
	}
	one, err := create(control.CheckpointRequest{Session: sessionA[:6], PortID: "cart"})
	kit.Check(t, err == nil && one.TriggerType == "manual" && one.TokensUsed == 140_000 && one.PortID == "cart" && strings.Contains(one.Summary, "Answer: Answer 1."),
		"%+v, err %v", one, err)
	two, err := create(control.CheckpointRequest{Session: sessionA, Trigger: "pre_heavy", Summary: " 큰 작업 " + strings.Repeat("글", 5000)})
	kit.Check(t, err == nil && two.TriggerType == "pre_heavy" && strings.HasPrefix(two.Summary, "큰 작업 글") && len([]rune(two.Summary)) <= 1100,
		"%+v, err %v", two, err)
	kit.Check(t, one.ID != two.ID && one.ContextHash == two.ContextHash, "of one moment: %+v and %+v", one, two)
	for _, tt := range []struct {
		req  control.CheckpointRequest
		code string
	}{
		{control.CheckpointRequest{Session: sessionA, Trigger: "auto_80"}, control.CodeUsage},
		{control.CheckpointRequest{Session: "nobody"}, control.CodeNoSession},
		{control.CheckpointRequest{}, control.CodeUsage},
		{control.CheckpointRequest{Session: sessionA + "/agent-a1"}, control.CodeUsage},
		{control.CheckpointRequest{Session: sessionA, PortID: strings.Repeat("p", 201)}, control.CodeUsage},
	} {
		_, err := create(tt.req)
		kit.Check(t, code(err) == tt.code, "%+v: %v, want %s", tt.req, err, tt.code)
	}
	w.stop()
	w.watching()
	got := w.checkpoints(sessionA)
	kit.Check(t, len(got) == 2 && got[0].ID == two.ID, "after a restart: %+v", got)
	page := func(offset int) control.Checkpoints {
		a, err := w.client.Checkpoints(t.Context(), control.CheckpointsQuery{Page: control.Page{Offset: offset, Limit: 1}})
		kit.Require(t, err == nil && len(a.Checkpoints) == 1, "page at %d: %+v, err %v", offset, a, err)
		return a
	}
	if a, b := page(0), page(1); a.Checkpoints[0].ID != two.ID || a.Next != 1 || b.Checkpoints[0].ID != one.ID || b.Next != 0 {
		t.Errorf("pages %+v and %+v", a, b)
	}
	w.until("the server has both", func() bool { return len(sent()) == 2 })
	p := w.handed(sessionA)
	kit.Check(t, p.Notices == 0, "who asked for it is told: %+v", p)
	kit.Must(t, os.Remove(filepath.Join(w.root, transcriptOf(sessionA))))
	got = w.checkpoints(sessionA)
	kit.Check(t, len(got) == 2, "without the file: %+v", got)
	w.must(w.client.Forget(t.Context(), control.ForgetRequest{Session: sessionA}))
	got = w.checkpoints("")
	kit.Check(t, len(got) == 0, "after a forget: %+v", got)
}

// A question about a session that nothing was understood of finds what lies in it, and notifies no one.
func TestCheckpointsOfWhatIsAskedFor(t *testing.T) {
	w := newWorld(t)
	c := kit.Chat{Session: sessionA}
	w.write(transcriptOf(sessionA), c.Turn(140_000)+c.Compaction())
	w.watching()
	w.stop()
	projections := openTestState(t, w)
	db := projections.State
	facts := loadFacts(t, db)
	kit.Must(t, projections.Drop(t.Context(), slices.Collect(maps.Keys(facts))))
	for id, f := range facts {
		f.Compacted = false // as when it was read by a daemon that understood nothing
		tracked, _, _, err := db.Files.File(t.Context(), id)
		kit.Must(t, err)
		c := tracked.Cursor
		w.must(db.Commit(t.Context(), []state.Step{{Prev: c, From: c, Tracked: tracked, Routing: f}}))
	}
	kit.Must(t, db.Close())
	w.watching()
	kit.Equal(t, "checkpoints at the start", w.triggers(""), "")
	kit.Equal(t, "checkpoints", w.triggers(sessionA), "compact@160000")
	p := w.handed(sessionA)
	kit.Check(t, p.Notices == 0, "told %+v", p)
}

// A budget that is set holds for what comes; what was passed already by it fires nothing.
func TestSetBudget(t *testing.T) {
	w := watchingWorld(t)
	c, other := kit.Chat{Session: sessionA}, kit.Chat{Session: sessionB}
	w.write(transcriptOf(sessionA), c.Turn(95_000))
	w.send(transcriptOf(sessionB), other.Turn(60_000))
	set := func(req control.BudgetRequest) control.Budget {
		t.Helper()
		a, err := w.client.SetBudget(t.Context(), req)
		kit.Require(t, err == nil && len(a.Budgets) == 1, "%+v: %+v, err %v", req, a, err)
		return a.Budgets[0]
	}
	want := control.Budget{Session: sessionA, Model: "claude-opus-4-5", Window: 200_000, Limit: 110_000, Used: 95_000, Source: "configured", Pinned: true}
	kit.Same(t, "-want +got", cmp.Diff(want, set(control.BudgetRequest{Session: sessionA[:8], Limit: 110_000})))
	set(control.BudgetRequest{Model: "claude-opus-4-5", Limit: 100_000})
	w.write(transcriptOf(sessionA), c.Turn(96_000)+c.Turn(99_000))
	w.send(transcriptOf(sessionB), other.Turn(70_000)+other.Turn(81_000))
	kit.Equal(t, "checkpoints", w.triggers(sessionA), "auto_90@99000")
	kit.Equal(t, "the other session", w.triggers(sessionB), "auto_80@81000")
	w.stop()
	w.watching()
	all, err := w.client.Budgets(t.Context(), "")
	wantAll := []control.Budget{
		{Model: "claude-opus-4-5", Window: 200_000, Limit: 100_000, Source: "configured", Pinned: true},
		{Session: sessionA, Limit: 110_000, Source: "configured", Pinned: true},
	}
	diff := cmp.Diff(wantAll, all.Budgets)
	kit.Check(t, err == nil && diff == "", "err %v, -want +got:\n%s", err, diff)
	b := set(control.BudgetRequest{Session: sessionA})
	kit.Check(t, b.Limit == 100_000, "without its own: %+v", b)
	b = set(control.BudgetRequest{Model: "claude-opus-4-5"})
	kit.Check(t, b.Limit == 167_000 && !b.Pinned, "without any: %+v", b)
	for _, req := range []control.BudgetRequest{
		{}, {Session: sessionA, Model: "m", Limit: 5000}, {Model: "m", Limit: 999}, {Model: "m", Limit: -1}, {Model: "m", Limit: 100_000_001},
		{Model: strings.Repeat("m", 300), Limit: 5000},
	} {
		_, err := w.client.SetBudget(t.Context(), req)
		kit.Check(t, code(err) == control.CodeUsage, "%+v: %v", req, err)
	}
}

// An automatic compaction teaches where others with its model will compact.
func TestLearnedBudget(t *testing.T) {
	w := newWorld(t)
	c, other := kit.Chat{Session: sessionA}, kit.Chat{Session: sessionB}
	w.write(transcriptOf(sessionA), c.Turn(100_000)+c.Compaction())
	w.watching()
	w.send(transcriptOf(sessionB), other.Turn(100_000)+other.Turn(128_000))
	kit.Equal(t, "checkpoints", w.triggers(sessionB), "auto_80@128000")
	a, err := w.client.Budgets(t.Context(), sessionB)
	want := []control.Budget{{Session: sessionB, Model: "claude-opus-4-5", Window: 200_000, Limit: 160_000, Used: 128_000, Source: "learned", Seen: 160_000}}
	diff := cmp.Diff(want, a.Budgets)
	kit.Check(t, err == nil && diff == "", "err %v, -want +got:\n%s", err, diff)
}
