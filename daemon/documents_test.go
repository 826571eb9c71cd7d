package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// saveFile writes a file below a working directory.
func saveFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	kit.WriteFile(t, path, text)
	return path
}

// talk makes lines of a conversation in which tools are called.
type talk struct {
	session, cwd string
	n            int
}

func (c *talk) line(typ, content string) string {
	c.n++
	return fmt.Sprintf(`{"parentUuid":%s,"isSidechain":false,"type":%q,"message":{"role":%q,"content":%s},"uuid":"%08d-0000-4000-8000-000000000000","timestamp":"2026-08-20T09:00:00.000Z","cwd":%q,"sessionId":%q,"version":"2.1.235"}`+"\n",
		map[bool]string{true: "null", false: fmt.Sprintf(`"%08d-0000-4000-8000-000000000000"`, c.n-1)}[c.n == 1], typ, typ, content, c.n, c.cwd, c.session)
}

func (c *talk) prompt(text string) string { return c.line("user", fmt.Sprintf("%q", text)) }

// call is a tool call and its result.
func (c *talk) call(name, input, result string, failed bool) string {
	id := fmt.Sprintf("toolu_%s_%d", c.session[:4], c.n)
	return c.line("assistant", fmt.Sprintf(`[{"type":"tool_use","id":%q,"name":%q,"input":%s}]`, id, name, input)) +
		c.line("user", fmt.Sprintf(`[{"type":"tool_result","tool_use_id":%q,"content":%q,"is_error":%v}]`, id, result, failed))
}

// links is a call of ccship-mcp, which has asked the daemon, if one runs, to make its answer count.
func (w *world) links(c *talk, path string, link bool) string {
	w.t.Helper()
	tool, action, nonce := "link_document", "link", ""
	if !link {
		tool, action = "unlink_document", "unlink"
	}
	if w.client != nil {
		if a, err := control.AnswerLink(w.t.Context(), w.client, control.LinkAnswerRequest{Action: action, Path: path}); err == nil {
			nonce = a.Nonce
		}
	}
	return c.call("mcp__plugin_ccship_ccship__"+tool, fmt.Sprintf(`{"path":%q}`, path), linkAnswer(action, path, nonce), false)
}

func linkAnswer(action, path, nonce string) string {
	return fmt.Sprintf(`{"action":%q,"path":%q,"nonce":%q}`, action, path, nonce)
}

// cd is a word from another folder.
func (c *talk) cd(dir string) string { c.cwd = dir; return c.prompt("from here") }

func (c *talk) edits(path string) string {
	return c.call("Edit", fmt.Sprintf(`{"file_path":%q,"old_string":"a","new_string":"b"}`, path), "The file has been updated", false)
}

// TestLinkAndChange changes a document in every way: all of it arrives, versions rise, and it outlives a restart.
func TestLinkAndChange(t *testing.T) {
	w, s, cwd := newDocumentWorld(t)
	spec := saveFile(t, cwd, "docs/spec.md", "# Spec\n")
	w.startWith("-p/"+sessionA+".jsonl", records(cwd, 0, 3))
	d := w.link(sessionA, "docs/spec.md")
	kit.Check(t, len(d.Documents) == 1 && d.Documents[0].Path == "docs/spec.md" && d.Documents[0].Version == 1 && d.Cwd == cwd && d.Documents[0].Problem == "",
		"linked: %+v", d)
	w.sync()
	if e, _ := s.latest(sessionA, "docs/spec.md"); e.Change != "linked" || e.By != "user" || e.Version != 1 || e.AddedAt.IsZero() || e.Line != nil {
		t.Errorf("event: %+v", e)
	}
	is := func(want string) {
		t.Helper()
		w.until(fmt.Sprintf("the server has %.20q", want), func() bool {
			got, ok := s.content(sessionA, "docs/spec.md")
			return ok && got == want
		})
	}
	is("# Spec\n")
	w.link(sessionA, spec) // again, by another name
	next := saveFile(t, cwd, "docs/.spec.md.swp", "by an editor\n")
	kit.Must(t, os.Rename(next, spec))
	is("by an editor\n")
	kit.Must(t, os.Remove(spec))
	w.until("it is deleted", func() bool { e, _ := s.latest(sessionA, "docs/spec.md"); return e.Change == "deleted" })
	w.stop()
	saveFile(t, cwd, "docs/spec.md", "while nobody looked\x00\n")
	w.start()
	is("while nobody looked\x00\n")
	e, _ := s.latest(sessionA, "docs/spec.md")
	kit.Check(t, e.Encoding == "base64", "encoding of a zero byte: %q", e.Encoding)
	d, err := w.client.Documents(t.Context(), sessionA[:8])
	kit.Check(t, err == nil && len(d.Documents) == 1 && d.Documents[0].Version == 4 && !d.Documents[0].Deleted, "list: %+v %v", d, err)
	kit.Must(t, os.Remove(spec))
	d = w.unlink(sessionA, "./docs/../docs/spec.md")
	kit.Check(t, len(d.Documents) == 0, "after unlink: %+v", d)
	saveFile(t, cwd, "docs/spec.md", "again\n")
	w.link(sessionA, "docs/spec.md")
	is("again\n")
	got, want := s.changes(sessionA, "docs/spec.md"), "linked 1, modified 2, deleted 3, modified 4, unlinked 5, linked 6"
	kit.Check(t, got == want, "changes: %s, want %s", got, want)
	h := s.heads[sessionA]
	kit.Check(t, h["machine"] != "" && h["epoch"] != "" && h["cwd"] == cwd, "head: %v", h)
}

// TestDocumentSizes sends documents of every size: inline, as blobs, and not at all.
func TestDocumentSizes(t *testing.T) {
	w, s, cwd := newDocumentWorld(t)
	w.cfg.DocumentCap = 3 << 20
	sizes := map[string]int{"empty": 0, "inline": 64 << 10, "blob": 64<<10 + 1, "row": 1 << 20, "file": 1<<20 + 1, "cap": 3 << 20, "over": 3<<20 + 1}
	for name, size := range sizes {
		saveFile(t, cwd, name, strings.Repeat("한", size/3)+strings.Repeat("x", size%3))
	}
	w.startWith("-p/"+sessionA+".jsonl", records(cwd, 0, 3))
	for name := range sizes {
		w.link(sessionA, name)
	}
	w.sync()
	for name, size := range sizes {
		e, _ := s.latest(sessionA, name)
		got, ok := s.content(sessionA, name)
		if name == "over" {
			kit.Check(t, e.TooLarge && e.Size == int64(size) && e.Content == nil && e.Blob == "" && e.SHA256 == "",
				"%s: %+v", name, e)
			continue
		}
		kit.Check(t, ok && len(got) == size && e.Size == int64(size) && (e.Blob != "") == (size > 64<<10) && !e.TooLarge,
			"%s: %d bytes, %v; blob %q", name, len(got), ok, e.Blob)
	}
	d, _ := w.client.Documents(t.Context(), sessionA)
	for _, doc := range d.Documents {
		kit.Check(t, doc.TooLarge == (doc.Path == "over"), "list: %+v", doc)
	}
	saveFile(t, cwd, "over", "small now")
	w.until("it is small enough", func() bool { got, _ := s.content(sessionA, "over"); return got == "small now" })
}

// TestClaudeLinks follows what Claude asks for and does: links of its own, edits by it and its agents; never what lies in
// the history, in a fork's copy, or was refused.
func TestClaudeLinks(t *testing.T) {
	w, s, cwd := newDocumentWorld(t)
	for _, name := range []string{"old.md", "spec.md", "design.md", "agent.md"} {
		saveFile(t, cwd, name, "# "+name+"\n")
	}
	c := &talk{session: sessionA, cwd: cwd}
	main := "-p/" + sessionA + ".jsonl"
	w.startWith(main, c.prompt("hello")+w.links(c, "old.md", true))
	w.write(main, w.links(c, "spec.md", true)+w.links(c, "design.md", true)+w.links(c, "../outside", true)+w.links(c, "design.md", false)+
		c.call("mcp__plugin_ccship_ccship__link_document", `{"path":"agent.md"}`, `{"action":"link","path":"agent.md"}`, true))
	w.sync()
	got, want := s.changes(sessionA, "spec.md")+"; "+s.changes(sessionA, "design.md"), "linked 1; linked 1, unlinked 2"
	kit.Require(t, got == want, "changes: %s, want %s", got, want)
	e, _ := s.latest(sessionA, "spec.md")
	kit.Check(t, e.By == "mcp" && e.Line != nil && *e.Line == 4, "event: %+v", e)
	if n := len(s.told(sessionA)); n != 3 {
		t.Errorf("%d events: %+v", n, s.told(sessionA))
	}
	path := saveFile(t, cwd, "spec.md", "# by Claude\n")
	w.send(main, c.edits(path))
	if e, _ := s.latest(sessionA, "spec.md"); e.Change != "modified" || e.By != "claude" || e.Line == nil || *e.Content != "# by Claude\n" {
		t.Errorf("an edit: %+v", e)
	}
	agent := &talk{session: sessionA, cwd: cwd}
	saveFile(t, cwd, "spec.md", "# by an agent\n")
	w.send("-p/"+sessionA+"/subagents/agent-a1.jsonl", agent.prompt("do it")+agent.edits(path))
	w.until("the agent's edit arrives", func() bool { e, _ := s.latest(sessionA, "spec.md"); return e.Version == 3 })
	e, _ = s.latest(sessionA, "spec.md")
	kit.Check(t, e.By == "claude" && *e.Content == "# by an agent\n", "an agent's edit: %+v", e)
	away := w.links(c, "design.md", true)
	w.stop()
	w.write(main, away) // while the daemon is away: it had watched this transcript
	w.deliver()
	w.until("what was asked meanwhile is done", func() bool { e, _ := s.latest(sessionA, "design.md"); return e.Version == 3 })
	saveFile(t, cwd, "below/near.md", "x")
	w.write(main, c.cd(filepath.Join(cwd, "below"))+w.links(c, "near.md", true)+w.links(c, "agent.md", true))
	w.until("paths count from where Claude is, or began", func() bool {
		near, _ := s.content(sessionA, "below/near.md")
		agent, _ := s.content(sessionA, "agent.md")
		return near == "x" && agent == "# agent.md\n"
	})
	w.unlink(sessionA, "design.md")
	w.stop()
	w.deliver()
	kit.Equal(t, "changes", s.changes(sessionA, "design.md"), "linked 1, unlinked 2, linked 3, unlinked 4")
	_, told := s.latest(sessionA, "old.md")
	kit.Check(t, !told, "a link of the history was made")
}

// TestLinkRefused asks for what cannot be linked, of whom it cannot.
func TestLinkRefused(t *testing.T) {
	w, s, cwd := newDocumentWorld(t)
	saveFile(t, cwd, "spec.md", "x")
	saveFile(t, cwd, ".codetracker/credentials.json", `{"api_key":"secret"}`)
	kit.Must(t, os.Symlink(w.cfg.StateDir, filepath.Join(cwd, "state")))
	w.write("-p/"+sessionA+".jsonl", records(cwd, 0, 3))
	home := filepath.Dir(w.cfg.StateDir)
	w.startWith("-home/"+sessionB+".jsonl", records(home, 0, 3))
	for _, test := range []struct{ session, path, code, says string }{
		{sessionA, "missing.md", control.CodeDocument, "no file"},
		{sessionA, "../x", control.CodeDocument, ""},
		{sessionA, "", control.CodeDocument, "empty"},
		{sessionA, ".codetracker/credentials.json", control.CodeDocument, "own files"},
		{sessionA, "state/state.db", control.CodeDocument, "outside"},
		{sessionB, filepath.Join(w.cfg.StateDir, "state.db"), control.CodeDocument, "own files"},
		{sessionB, "s", control.CodeDocument, "socket"},
		{"", "spec.md", control.CodeUsage, ""},
		{"nobody", "spec.md", control.CodeNoSession, ""},
		{"0", "spec.md", control.CodeAmbiguous, "sessions begin"},
	} {
		_, err := w.client.LinkDocument(t.Context(), control.DocumentRequest{Session: test.session, Path: test.path})
		var e *control.Error
		kit.Check(t, errors.As(err, &e) && e.Code == test.code && strings.Contains(e.Message, test.says) &&
			(e.Hint != "" || test.path == "spec.md"),
			"%s %s: %+v, want %s %q", test.session, test.path, err, test.code, test.says)
	}
	_, err := w.client.UnlinkDocument(t.Context(), control.DocumentRequest{Session: sessionA, Path: "spec.md"})
	e := (*control.Error)(nil)
	kit.Check(t, errors.As(err, &e) && e.Code == control.CodeDocument, "unlink of what is not linked: %v", err)
	kit.Equal(t, "events came of it", len(s.told(sessionA))+len(s.told(sessionB)), 0)
}

// TestForgedLinks: only an answer of our own ccship-mcp links a document. Other MCP servers may have a tool of that name,
// and what a tool returns, or a text that Claude repeats, may look like such an answer.
func TestForgedLinks(t *testing.T) {
	w, s, cwd := newDocumentWorld(t)
	for _, name := range []string{"plan.md", "notes.md", "good.md"} {
		saveFile(t, cwd, name, "# "+name+"\n")
	}
	c := &talk{session: sessionA, cwd: cwd}
	main := "-p/" + sessionA + ".jsonl"
	w.startWith(main, c.prompt("hello"))
	nonce := func(action, path string) string {
		a := kit.Try(control.AnswerLink(t.Context(), w.client, control.LinkAnswerRequest{Action: action, Path: path})).Must(t)
		return a.Nonce
	}
	const plugin = "mcp__plugin_ccship_ccship__link_document"
	forge := func(tool, nonce string) string {
		return c.call(tool, `{"path":"plan.md"}`, linkAnswer("link", "plan.md", nonce), false)
	}
	good := c.call(plugin, `{"path":"good.md"}`, linkAnswer("link", "good.md", nonce("link", "good.md")), false)
	w.write(main, forge("mcp__evil__link_document", nonce("link", "plan.md"))+
		forge("mcp__ccship__link_document", nonce("link", "plan.md"))+
		forge("mcp__plugin_ccship_ccship__x__link_document", nonce("link", "plan.md"))+
		forge("Bash", nonce("link", "plan.md"))+
		forge(plugin, "")+forge(plugin, "AAAA.bbbb")+
		forge(plugin, nonce("link", "notes.md"))+
		forge(plugin, nonce("unlink", "plan.md"))+
		good)
	w.sync()
	w.until("the real one is linked", func() bool { return s.changes(sessionA, "good.md") == "linked 1" })
	for _, name := range []string{"plan.md", "notes.md"} {
		got := s.changes(sessionA, name)
		kit.Check(t, got == "", "%s is linked by an answer that was made up: %s", name, got)
	}

	used := nonce("link", "plan.md")
	w.write(main, forge(plugin, used))
	w.until("the real one is linked", func() bool { return s.changes(sessionA, "plan.md") == "linked 1" })
	other := &talk{session: sessionB, cwd: cwd}
	path := "-p/" + sessionB + ".jsonl"
	w.send(path, other.prompt("hello"))
	w.write(path, other.call(plugin, `{"path":"plan.md"}`, linkAnswer("link", "plan.md", used), false)+w.links(other, "good.md", true))
	w.until("the real one is linked", func() bool { return s.changes(sessionB, "good.md") == "linked 1" })
	kit.Equal(t, "an answer counts in two sessions", s.changes(sessionB, "plan.md"), "")
}

// TestDocumentAwayForAMoment: a document that is away while it is to be sent is said to be missing, and gets there.
func TestDocumentAwayForAMoment(t *testing.T) {
	w, s, cwd := newDocumentWorld(t)
	text := string(bytes.Repeat([]byte("0123456789abcdef"), 160<<10)) // 2.5 MiB: not in its row
	doc := saveFile(t, cwd, "large.md", text)
	old := time.Now().Add(-time.Hour)
	kit.Must(t, os.Chtimes(doc, old, old))
	w.startWith("-p/"+sessionA+".jsonl", records(cwd, 0, 3))
	w.must(w.client.Pause(t.Context(), control.PauseRequest{}))
	w.link(sessionA, "large.md")
	away := filepath.Join(filepath.Dir(cwd), filepath.Base(cwd)+"-away")
	kit.Must(t, os.Rename(cwd, away)) // the folder: that is no deletion
	w.must(w.client.Resume(t.Context()))
	w.sync()
	w.until("it is said that it is not there", func() bool {
		d, err := w.client.Documents(t.Context(), sessionA)
		return err == nil && d.Documents[0].Problem != ""
	})
	_, there := s.content(sessionA, "large.md")
	kit.Require(t, !there, "the server has it")
	kit.Must(t, os.Rename(away, cwd))
	w.until("the server has it", func() bool { got, ok := s.content(sessionA, "large.md"); return ok && got == text })
	w.until("nothing is wrong any more", func() bool {
		d, err := w.client.Documents(t.Context(), sessionA)
		return err == nil && d.Documents[0].Problem == "" && d.Documents[0].Version == 1
	})
	got := s.changes(sessionA, "large.md")
	kit.Check(t, strings.HasPrefix(got, "linked 1"), "changes: %s", got)
}
