//go:build unix

package claude_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestRealClaudeAcross goes back to before a compaction at a terminal, in each version that offers it: what was said before
// that message stays, and what came after it is gone, on both sides of the compaction.
func TestRealClaudeAcross(t *testing.T) {
	kit.OnlyInLab(t)
	for _, version := range allVersions() {
		t.Run(version, func(t *testing.T) {
			h := newHome(t, installed(t, version), newStub(t))
			h.version = version
			w := newWorld(h)
			w.start()
			c := h.open()
			defer c.close()
			for _, text := range []string{"first prompt", "second prompt", "third prompt"} {
				c.ask(text)
			}
			c.say("/compact")
			session := mains(t, w)[0]
			w.writes(session, "compact_boundary")
			c.say("fourth prompt")
			w.answered(session, "fourth prompt")
			c.keys("Escape", "Escape")
			c.shows("Rewind")
			if !c.mark("second prompt") {
				t.Skipf("version %s does not go back to before a compaction", version)
			}
			c.keys("Enter", "Enter")
			eventually(t, "the second prompt is taken back", time.Minute, func() bool { return !strings.Contains(c.screen(), "said: second") })
			c.keys("C-e", "C-u")
			c.ask("another way")
			w.sync()
			w.has(session, []string{"first prompt", "another way"}, []string{"second prompt", "third prompt", "fourth prompt"})
			c.end()
			w.verify()
		})
	}
}

// answered waits until a transcript has an answer that repeats a text.
func (w *world) answered(session, text string) {
	w.t.Helper()
	path := transcripts(w.t, w.projects())[session]
	eventually(w.t, "the transcript has an answer with "+text, time.Minute, func() bool {
		for line := range strings.Lines(string(read(w.t, path))) {
			if strings.Contains(line, `"type":"assistant"`) && strings.Contains(line, text) {
				return true
			}
		}
		return false
	})
}

// mark moves up to a choice, and reports whether it is there.
func (c *terminal) mark(choice string) bool {
	c.t.Helper()
	for range 12 {
		for line := range strings.Lines(c.screen()) {
			if strings.Contains(line, "❯ "+choice) && !strings.HasPrefix(line, "❯") {
				return true
			}
		}
		c.keys("Up")
	}
	return false
}
