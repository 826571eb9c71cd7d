package daemon

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
)

// hook asks as a hook does, and ends: having printed and confirmed what it got, or not.
func (w *world) hook(session string, prints bool) control.Pending {
	w.t.Helper()
	a, err := w.client.Pending(w.t.Context(), control.PendingRequest{Session: session, Confirm: true})
	if err == nil && prints && a.Receipt != "" {
		_, err = w.client.Pending(w.t.Context(), control.PendingRequest{Session: session, Receipt: a.Receipt})
	}
	kit.Must(w.t, err)
	return a
}

// shows is a record that says that a hook showed the model something.
func shows(c *kit.Chat, text string) string {
	return c.Record(map[string]any{"type": "attachment", "attachment": map[string]any{
		"type": "async_hook_response", "hookEvent": "PostToolUse", "exitCode": 0,
		"response": map[string]any{"hookSpecificOutput": map[string]any{"hookEventName": "PostToolUse", "additionalContext": text}},
	}})
}

// A hook that ends before it has printed costs nobody a notice, and what the transcript shows is never shown again:
// also when the daemon is killed in between.
func TestNoticeUntilItIsShown(t *testing.T) {
	w := watchingWorld(t)
	c := kit.Chat{Session: sessionA}
	w.send(transcriptOf(sessionA), c.Turn(140_000))
	const introduced = "[Session started]\n"
	var first control.Pending
	w.until("a hook is answered", func() bool { first = w.hook(sessionA, false); return first.Notices == 1 })
	kit.Check(t, strings.HasPrefix(first.Text, introduced) && first.Receipt != "", "the first hook gets %+v", first)
	var again control.Pending
	w.until("it is gone", func() bool { again = w.hook(sessionA, false); return again.Text != "" })
	w.restart()
	var printed control.Pending
	w.until("it is gone", func() bool { printed = w.hook(sessionA, true); return printed.Text != "" })
	kit.Check(t, again.Text == first.Text && printed.Text == first.Text,
		"three hooks get %q, %q and %q", first.Text, again.Text, printed.Text)
	a := w.hook(sessionA, true)
	kit.Check(t, a.Text == "", "right after that a hook gets %q", a.Text)
	for _, x := range []struct {
		shown string
		want  int
	}{{"something else", 1}, {printed.Text, 0}} {
		w.send(transcriptOf(sessionA), shows(&c, x.shown)+c.Answer("one")+c.Answer("two"))
		w.stop()
		n := w.keptNotices(sessionA)
		kit.Check(t, n == x.want, "when the transcript shows %q, %d notices are kept, want %d", x.shown, n, x.want)
		w.start()
	}
}

// keptNotices is how many notices of a session are in the state of a daemon that does not run.
func (w *world) keptNotices(session string) int {
	w.t.Helper()
	projections := kit.Try(projection.Open(w.t.Context(), state.Options{Path: filepath.Join(w.cfg.StateDir, "state.db"), HeadRoom: 1})).Must(w.t)
	defer projections.State.Close()
	return len(projections.Notices.Of(session))
}

// What Claude asked for and did not get it is shown, with the reason: its tool had to answer before the daemon knew.
func TestRefusedLinkIsTold(t *testing.T) {
	w, _, cwd := newDocumentWorld(t)
	w.cfg.DocumentCap = 10
	saveFile(t, cwd, ".env", "KEY=1")
	saveFile(t, cwd, "big.md", "more than ten bytes")
	c := &talk{session: sessionA, cwd: cwd}
	w.startWith("-p/"+sessionA+".jsonl", c.prompt("hello"))
	w.init(sessionA, cwd)
	for _, x := range []struct {
		path string
		want []string
	}{
		{".env", []string{"[Document not linked]\n- .env: ", "keys or passwords"}},
		{"missing.md", []string{"[Document not linked]\n- missing.md: "}},
		{"../outside.md", []string{"[Document not linked]\n- ../outside.md: "}},
		{"big.md", []string{"[Document linked]\n- big.md: its content is not kept", "document_cap"}},
	} {
		w.send("-p/"+sessionA+".jsonl", w.links(c, x.path, true))
		var got string
		w.until("Claude is told of "+x.path, func() bool { got = w.hook(sessionA, true).Text; return got != "" })
		for _, part := range x.want {
			kit.Check(t, strings.Contains(got, part) && (!strings.Contains(got, "\n- ") || strings.Count(got, "\n") == 1),
				"%s: Claude is told %q, want %q", x.path, got, part)
		}
	}
	w.send("-p/"+sessionA+".jsonl", w.links(c, "never.md", false))
	kit.Equal(t, "Claude is told of a link that was not there to remove", w.hook(sessionA, true).Text, "")
}

// Two documents of a session that are named when it starts do not come as notices. One that is linked later does.
func TestDocumentsNamedAtStart(t *testing.T) {
	w, _, cwd := newDocumentWorld(t)
	for _, name := range []string{"a.md", "b.md", "c.md"} {
		saveFile(t, cwd, name, "x")
	}
	c := &talk{session: sessionA, cwd: cwd}
	w.startWith("-p/"+sessionA+".jsonl", c.prompt("hello"))
	w.link(sessionA, "a.md")
	w.link(sessionA, "b.md")
	kit.Has(t, "it starts with", w.init(sessionA, cwd), "a.md\n  - b.md")
	w.link(sessionA, "c.md")
	kit.Equal(t, "after the start a hook gets", w.hook(sessionA, true).Text, "[Document linked]\n- c.md")
}

// A hook before a tool whose answer exceeds a mark gets the notice, though Claude Code writes the answer after it has
// started the hook.
func TestHookWaitsForItsTool(t *testing.T) {
	w := watchingWorld(t)
	c := kit.Chat{Session: sessionA}
	w.send(transcriptOf(sessionA), c.Turn(120_000))
	w.init(sessionA, "/home/kim/shop")
	asked, began := make(chan control.Pending, 1), time.Now()
	go func() {
		a, err := w.client.Pending(w.t.Context(), control.PendingRequest{Session: sessionA, Tool: "toolu_heavy", Confirm: true})
		kit.Check(t, err == nil, "%v", err)
		asked <- a
	}()
	call := c.Record(map[string]any{"type": "assistant", "message": map[string]any{
		"id": "msg_heavy", "role": "assistant", "model": "claude-opus-4-5",
		"content": []any{map[string]any{"type": "tool_use", "id": "toolu_heavy", "name": "Bash", "input": map[string]any{"command": "ls"}}},
		"usage":   map[string]any{"input_tokens": 140_000, "output_tokens": 50},
	}})
	w.write(transcriptOf(sessionA), call)
	if a := <-asked; a.Notices == 0 { // this machine took longer than a hook waits
		waited := time.Since(began)
		kit.Check(t, waited >= 900*time.Millisecond, "the hook waited for %s only", waited)
		w.until("the next hook gets it", func() bool { return w.hook(sessionA, true).Notices == 1 })
	}
}
