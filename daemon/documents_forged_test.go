package daemon

import (
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

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
