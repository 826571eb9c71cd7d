package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
)

// A call that began before the daemon was stopped is completed by what comes after, whether it was stopped gently or
// not at all; the messages are the same as if it had never been.
func TestMessagesOverRestart(t *testing.T) {
	w := newWorld(t)
	c := kit.Chat{Session: sessionA}
	w.start()
	w.send(transcriptOf(sessionA), c.Prompt("list it")+c.Call("toolu_1", "ls -l"))
	want := []string{"text user list it", "tool_start assistant toolu_1"}
	got := said(w.messages(sessionA))
	kit.Require(t, cmp.Equal(got, want), "%q", got)
	w.restart()
	kit.Equal(t, "after the restart", said(w.messages(sessionA)), want)
	kit.Equal(t, "the restart folded lines anew", w.figure("derived_lines_total"), 0)
	w.send(transcriptOf(sessionA), c.Result("toolu_1", "total 0")+c.Answer("Nothing.")+c.Done())
	m := w.messages(sessionA)
	want = []string{"text user list it", "tool_complete assistant toolu_1 total 0", "text assistant Nothing.", "result system"}
	kit.Same(t, "messages", cmp.Diff(want, said(m)))
	last := m.Messages[3]
	kit.Check(t, last.Duration == 12.5 && last.InputTokens == 2000 && last.OutputTokens == 100, "result %+v", last)
	kit.Check(t, m.Total == 4 && m.UpdatedAt != 0 && m.Session == sessionA, "%+v", m)
}

// After a rewrite the history is that of the file as it is now.
func TestMessagesAfterRewrite(t *testing.T) {
	w := newWorld(t)
	c := kit.Chat{Session: sessionA}
	first := c.Prompt("one") + c.Answer("two")
	w.start()
	w.send(transcriptOf(sessionA), first+c.Prompt("three")+c.Answer("four"))
	w.messages(sessionA)
	again := kit.Chat{Session: sessionA}
	w.rewrite(transcriptOf(sessionA), again.Prompt("ONE")+again.Answer("TWO"))
	w.sync()
	kit.Same(t, "messages", cmp.Diff([]string{"text user ONE", "text assistant TWO"}, said(w.messages(sessionA))))
}

// What was cleared stays away: over a restart, the loss of the fold, and until something new is written.
func TestClearMessages(t *testing.T) {
	w := newWorld(t)
	c := kit.Chat{Session: sessionA}
	w.start()
	w.send(transcriptOf(sessionA), c.Prompt("one")+c.Answer("two"))
	r, err := w.client.ClearMessages(context.Background(), sessionA)
	kit.Require(t, err == nil && r.Cleared == 2 && r.Session == sessionA, "%+v %v", r, err)
	for range 2 {
		m := w.messages(sessionA)
		kit.Check(t, m.Total == 0 && m.Messages != nil && len(m.Messages) == 0, "%+v", m)
		w.restart()
	}
	w.send(transcriptOf(sessionA), c.Prompt("three"))
	kit.Equal(t, "said", said(w.messages(sessionA)), []string{"text user three"})
}

func TestMessagesPages(t *testing.T) {
	w := newWorld(t)
	c := kit.Chat{Session: sessionA}
	text := c.Prompt("p0")
	for i := range 9 {
		text += c.Answer(fmt.Sprint("p", i+1))
	}
	w.startWith(transcriptOf(sessionA), text)
	for _, x := range []struct {
		limit, offset int
		first, last   string
	}{{3, 0, "p7", "p9"}, {3, 5, "p2", "p4"}, {0, 8, "p0", "p1"}, {5, 9, "p0", "p0"}} {
		m, err := w.client.Messages(context.Background(), control.MessagesQuery{Session: sessionA, Page: control.Page{Limit: x.limit, Offset: x.offset}})
		kit.Check(t, err == nil && m.Total == 10 && m.Offset == x.offset && m.Messages[0].Content == x.first && m.Messages[len(m.Messages)-1].Content == x.last,
			"limit %d, offset %d: %q, %v", x.limit, x.offset, said(m), err)
	}
	m, err := w.client.Messages(context.Background(), control.MessagesQuery{Session: sessionA, Page: control.Page{Limit: 3, Offset: 10}})
	kit.Check(t, err == nil && len(m.Messages) == 0, "behind the oldest: %q, %v", said(m), err)
}

// TestSessionsByName says in one line what is wrong with a name, and what to do.
func TestSessionsByName(t *testing.T) {
	w := newWorld(t)
	near := strings.Replace(sessionA, "0001", "0009", 1)
	for _, session := range []string{sessionA, near, sessionB} {
		c := kit.Chat{Session: session}
		w.write(transcriptOf(session), c.Prompt("hello"))
	}
	c := kit.Chat{Session: sessionA}
	w.write("-home-kim-shop/"+sessionA+"/subagents/agent-a1.jsonl", c.Prompt("look"))
	gone := w.write(transcriptOf("0c0c0c0c-0000-4000-8000-000000000003"), (&kit.Chat{Session: "0c0c0c0c-0000-4000-8000-000000000003"}).Prompt("gone"))
	w.deliver()
	kit.Must(t, os.Remove(gone))
	kit.Equal(t, "a beginning names", w.messages("0b0b").Session, sessionB)
	kit.Equal(t, "an agent's name is", w.messages(sessionA+"/ag").Session, sessionA+"/agent-a1")
	for name, want := range map[string]struct{ code, message, hint string }{
		"":     {control.CodeUsage, "named", "session"},
		"zzz":  {control.CodeNoSession, "there is no session zzz", "ccship list"},
		"0a0a": {control.CodeAmbiguous, "2 sessions begin with 0a0a", near},
		"0c0c": {control.CodeNoSession, "is gone", "ccship show 0c0c0c0c"},
	} {
		_, err := w.client.Messages(context.Background(), control.MessagesQuery{Session: name})
		e, ok := errors.AsType[*control.Error](err)
		kit.Check(t, ok && e.Code == want.code && strings.Contains(e.Message, want.message) && strings.Contains(e.Hint, want.hint) && !strings.Contains(e.Message, "\n"),
			"%q: %+v", name, err)
	}
}

// A session whose file is gone is answered from what was kept; a forgotten one is not, and nothing of it is left.
func TestMessagesOfWhatIsGone(t *testing.T) {
	w := newWorld(t)
	a, b := kit.Chat{Session: sessionA}, kit.Chat{Session: sessionB}
	w.start()
	w.sync() // what the first listing finds is not kept before a caller asks for it
	path := w.write(transcriptOf(sessionA), a.Prompt("kept words"))
	w.send(transcriptOf(sessionB), b.Prompt("secret words"))
	w.stop() // stores all
	kit.Must(t, os.Remove(path))
	w.start()
	kit.Equal(t, "said", said(w.messages(sessionA)), []string{"text user kept words"})
	w.messages(sessionB)
	w.must(w.forget(sessionB))
	m, err := w.client.Messages(context.Background(), control.MessagesQuery{Session: sessionB})
	kit.Check(t, err != nil, "a forgotten session has messages: %q", said(m))
	w.stop()
	projections := openTestState(t, w)
	db := projections.State
	for id := range loadFacts(t, db) {
		u, known, err := projections.Sessions.Projection(t.Context(), id)
		kit.Check(t, err == nil && (!known || !bytes.Contains(u.Log, []byte("secret"))), "the state holds %q, %v", u.Log, err)
	}
}

func TestMessagesMembers(t *testing.T) {
	w := newWorld(t)
	c := kit.Chat{Session: sessionA}
	long := strings.Repeat("가", 600)
	w.startWith(transcriptOf(sessionA), c.Prompt("one")+c.Call("toolu_1", "ls\nrm")+c.Result("toolu_1", long))
	m := w.messages(sessionA)
	yes := true
	want := control.Message{
		Role: "assistant", Type: "tool_complete", ToolUseID: "toolu_1", ToolName: "Bash", Success: &yes,
		ToolInput: json.RawMessage(`{"description":"look","command":"ls"}`), Output: strings.Repeat("가", 500) + "... (600 chars total)",
	}
	kit.Same(t, "messages", cmp.Diff(want, m.Messages[1], cmpopts.IgnoreFields(control.Message{}, "Line", "UUID", "Timestamp")))
	kit.Try(os.Stat(filepath.Join(w.cfg.StateDir, "state.db"))).Should(t)
}

func (w *world) messages(session string) control.Messages {
	w.t.Helper()
	return kit.Try(w.client.Messages(context.Background(), control.MessagesQuery{Session: session})).Must(w.t)
}

// said is the messages in short.
func said(m control.Messages) (lines []string) {
	for _, x := range m.Messages {
		lines = append(lines, strings.TrimSpace(x.Type+" "+x.Role+" "+x.Content+x.ToolUseID+" "+x.Output))
	}
	return lines
}

// figure is one of the metrics.
func (w *world) figure(name string) (value int64) {
	w.t.Helper()
	res := kit.Try(w.contract().http.Get("http://localhost/metrics")).Must(w.t)
	defer res.Body.Close()
	var text bytes.Buffer
	w.must(text.ReadFrom(res.Body))
	for line := range strings.Lines(text.String()) {
		if n, err := fmt.Sscanf(line, "ccship_"+name+" %d", &value); n == 1 && err == nil {
			return value
		}
	}
	w.t.Fatalf("no metric %s in\n%s", name, text.String())
	return 0
}

func transcriptOf(session string) string { return "-home-kim-shop/" + session + ".jsonl" }

// openTestState opens the state of a world whose daemon is stopped.
func openTestState(t *testing.T, w *world) *projection.DB {
	t.Helper()
	db := kit.Try(projection.Open(t.Context(), state.Options{Path: filepath.Join(w.cfg.StateDir, "state.db")})).Must(t)
	t.Cleanup(func() { db.State.Close() })
	return db
}

func loadFacts(t *testing.T, db *state.DB) map[tail.FileID]state.Routing {
	t.Helper()
	return kit.Try(db.Files.Routings(t.Context())).Must(t)
}
