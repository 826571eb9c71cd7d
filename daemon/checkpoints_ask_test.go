package daemon

import (
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
