package daemon

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
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

func (w *world) init(session, cwd string) string {
	w.t.Helper()
	a := kit.Try(w.client.Init(w.t.Context(), control.InitQuery{Session: session, Cwd: cwd})).Must(w.t)
	return a.Text
}

// noticed waits until a session is shown something: a disk that is slow lets it wait for another hook.
func (w *world) noticed(session, want string) {
	w.t.Helper()
	got := ""
	w.until("the session is told of "+want, func() bool { got = w.notices(session); return got != "" })
	kit.Check(w.t, got == want, "the session is told %q, want %q", got, want)
}

// notices takes what a session is to be shown.
func (w *world) notices(session string) string {
	w.t.Helper()
	a := kit.Try(w.client.Pending(w.t.Context(), control.PendingRequest{Session: session})).Must(w.t)
	return a.Text
}

// TestInit introduces sessions: a new one that no transcript is of yet, by its title after it was written, titled and
// resumed elsewhere, and after a restart.
func TestInit(t *testing.T) {
	w, s, cwd := newDocumentWorld(t)
	saveFile(t, cwd, "docs/spec.md", "# Spec\n")
	saveFile(t, cwd, "design.md", "# Design\n")
	w.start()
	plain := "[Session started]\n- Session: " + filepath.Base(cwd) + "\n- Working directory: " + cwd
	kit.Equal(t, "init", w.init(sessionA, cwd+"/"), plain)
	w.link(sessionA, "docs/spec.md") // before the first prompt
	w.noticed(sessionA, "[Document linked]\n- docs/spec.md")
	linked := plain + "\n- Linked documents (read them with the Read tool):\n  - docs/spec.md"
	c := &talk{session: sessionA, cwd: cwd}
	w.send("-p/"+sessionA+".jsonl", c.prompt("hello")+`{"type":"custom-title","customTitle":"Another name","sessionId":"`+sessionA+`"}`+"\n")
	w.until("the link arrives with the transcript", func() bool { got, _ := s.content(sessionA, "docs/spec.md"); return got == "# Spec\n" })
	e, _ := s.latest(sessionA, "docs/spec.md")
	kit.Check(t, e.Change == "linked" && e.Version == 1, "event: %+v", e)
	w.send("-p/"+sessionA+".jsonl", w.links(c, "design.md", true))
	linked = strings.Replace(linked, "Session: "+filepath.Base(cwd), "Session: Another name", 1) + "\n  - design.md"
	kit.Equal(t, "Claude is told of its own link", w.notices(sessionA), "")
	for _, again := range []string{"same daemon", "restarted"} {
		got := w.init(sessionA, "/elsewhere")
		kit.Check(t, got == linked, "%s:\n%s\nwant:\n%s", again, got, linked)
		w.restart()
	}
	w.unlink(sessionA, "design.md")
	w.unlink(sessionA, "docs/spec.md")
	plain, _, _ = strings.Cut(linked, "\n- Linked documents")
	kit.Equal(t, "nothing is linked any more", w.init(sessionA, cwd), plain)
	if got := w.init(sessionB, "/home/kim/evil\n- Linked documents:\x1b[31m"); strings.Count(got, "\n") != 2 || strings.ContainsRune(got, 0x1b) {
		t.Errorf("a folder with lines in its name: %q", got)
	}
	for _, q := range []control.InitQuery{{Session: "x"}, {Session: "x", Cwd: "relative"}, {Session: "x\ny", Cwd: "/"}, {Session: strings.Repeat("x", 201), Cwd: "/"}} {
		_, err := w.client.Init(t.Context(), q)
		kit.Check(t, err != nil, "%+.20v is introduced", q)
	}
}

// TestInitOfHistory introduces a session that was written before, by the title its user gave it, in Korean.
func TestInitOfHistory(t *testing.T) {
	w, _, cwd := newDocumentWorld(t)
	w.cfg.Locale = "ko"
	saveFile(t, cwd, "spec.md", "x")
	c := &talk{session: sessionA, cwd: cwd}
	w.startWith("-p/"+sessionA+".jsonl", c.prompt("hello"))
	w.send("-p/"+sessionA+".jsonl", `{"type":"custom-title","customTitle":"장바구니 개편","sessionId":"`+sessionA+`"}`+"\n")
	w.link(sessionA, "spec.md")
	w.noticed(sessionA, "[문서 연결됨]\n- spec.md")
	want := "[세션 시작]\n- 세션 이름: 장바구니 개편\n- 작업 디렉토리: " + cwd + "\n- 연결된 문서 (Read 도구로 읽을 것):\n  - spec.md"
	kit.Equal(t, "init", w.init(sessionA, "/elsewhere"), want)
}

// request puts a link request into a server, which then waits for the answer.
func (s *documentServer) request(id, session, path string, link bool) {
	kit.Locked(&s.mu, func() {
		s.requests = append(s.requests, map[string]any{"id": id, "session_id": session, "path": path, "link": link})
	})
}

// answered is the event that answers a link request.
func (s *documentServer) answered(session, id string) (documentEvent, bool) {
	for _, e := range s.told(session) {
		if e.RequestID == id {
			return e, true
		}
	}
	return documentEvent{}, false
}

// TestLinkRequestsNeedConsent: a server has nothing linked before the user allows it, wherever it seems to run: what
// listens on a loopback port may be another user's program, or the end of a tunnel.
func TestLinkRequestsNeedConsent(t *testing.T) {
	w, s, cwd := newDocumentWorld(t)
	saveFile(t, cwd, "spec.md", "# Spec\n")
	w.startWith("-p/"+sessionA+".jsonl", records(cwd, 0, 3))
	s.request("w1", sessionA, "spec.md", true)
	w.write("-p/"+sessionA+".jsonl", records(cwd, 3, 4)) // its answer says that there is one
	w.until("the request is answered", func() bool { _, ok := s.answered(sessionA, "w1"); return ok })
	e, _ := s.answered(sessionA, "w1")
	kit.Check(t, e.Change == "refused" && strings.Contains(e.Reason, "viewer_links"), "a server on this machine has a file linked: %+v", e)
	got, _ := s.content(sessionA, "spec.md")
	kit.Check(t, got == "", "it has the content %q", got)
}

// TestLinkRequests does what the viewer of a server asks for that the user allows, and answers each request once.
func TestLinkRequests(t *testing.T) {
	w, s, cwd := newDocumentWorld(t)
	saveFile(t, cwd, "spec.md", "# Spec\n")
	w.cfg.ViewerLinks = true
	main := "-p/" + sessionA + ".jsonl"
	w.startWith(main, records(cwd, 0, 3))
	s.request("w1", sessionA, "spec.md", true)
	s.request("w2", sessionA, "../secret", true)
	s.request("w3", "nobody", "spec.md", true)
	s.request("w4", sessionA, "spec.md", true)
	s.request("w5", sessionA, "other.md", false)
	w.write(main, records(cwd, 3, 4)) // its answer says that there are some
	for id, want := range map[string]string{"w1": "linked", "w2": "refused", "w4": "linked", "w5": "refused"} {
		w.until(id+" is answered", func() bool { _, ok := s.answered(sessionA, id); return ok })
		e, _ := s.answered(sessionA, id)
		kit.Check(t, e.Change == want && e.By == "viewer" && (e.Reason != "") == (want == "refused") && !strings.Contains(e.Reason, "\n"),
			"%s: %+v", id, e)
	}
	got, _ := s.content(sessionA, "spec.md")
	kit.Check(t, got == "# Spec\n", "content %q", got)
	w.noticed(sessionA, "[Document linked]\n- spec.md")
	s.request("w6", sessionA, "spec.md", false)
	w.write(main, records(cwd, 4, 5))
	w.until("it is unlinked", func() bool { e, _ := s.answered(sessionA, "w6"); return e.Change == "unlinked" })
	kit.Equal(t, "changes", s.changes(sessionA, "spec.md"), "linked 1, linked 1, unlinked 2")
}

// A real daemon tells a real socket that it is ready, that it lives, what it does, and that it stops.
func TestNotify(t *testing.T) {
	names := []string{filepath.Join(t.TempDir(), "n")}
	if runtime.GOOS == "linux" {
		names = append(names, "@ccship-test-"+strconv.Itoa(os.Getpid()))
	}
	for _, name := range names {
		messages := kit.ListenManager(t, name)
		t.Setenv("NOTIFY_SOCKET", name)
		t.Setenv("WATCHDOG_USEC", "400000")
		t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
		w := newSerialWorld(t)
		w.write("p/11111111-1111-4111-8111-111111111111.jsonl", `{"cwd":"/x"}`+"\n")
		w.start()
		const end = "STATUS=watching; 1 transcripts, 0 entries waiting"
		first := <-messages
		kit.Check(t, strings.HasPrefix(first, "READY=1\nSTATUS="), "first told %q", first)
		if !strings.Contains(first, end) {
			m := messages.Next(t, end)
			kit.Check(t, strings.HasPrefix(m, "WATCHDOG=1\n"), "told %q", m)
		}
		messages.Next(t, "WATCHDOG=1")
		_, _ = w.client.Reload(t.Context()) // notified whatever it finds
		m := messages.Next(t, "RELOADING=1")
		kit.Check(t, strings.HasPrefix(m, "RELOADING=1\nMONOTONIC_USEC="), "told %q", m)
		messages.Next(t, "READY=1")
		w.stop()
		messages.Next(t, "STOPPING=1")
	}
}

// A daemon whose manager has gone runs on.
func TestNotifyNobody(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	w := newSerialWorld(t)
	w.start()
	w.write("p/11111111-1111-4111-8111-111111111111.jsonl", `{"cwd":"/x"}`+"\n")
	r := w.sync()
	kit.Check(t, r.Done, "%+v", r)
}
