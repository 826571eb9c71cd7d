package daemon

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// A rewind to before a link was shown has Claude shown again what is linked, once; a later rewind does not.
func TestLinkIsToldAgainAfterRewind(t *testing.T) {
	w, _, cwd := newDocumentWorld(t)
	saveFile(t, cwd, "spec.md", "# Spec\n")
	c := &talk{session: sessionA, cwd: cwd}
	shown := func(text string) string {
		line := c.line("attachment", `""`)
		return strings.Replace(line, `"uuid":`, fmt.Sprintf(`"attachment":{"type":"hook_additional_context","content":[%q]},"uuid":`, text), 1)
	}
	turn := func(text string) string {
		return c.prompt(text) + c.line("assistant", `[{"type":"text","text":"done"}]`)
	}
	back := func(to int, text string) string {
		line := turn(text)
		uuid := func(n int) string { return fmt.Sprintf(`{"parentUuid":"%08d-`, n) }
		return strings.Replace(line, uuid(c.n-2), uuid(to), 1)
	}
	write := func(lines string) { w.send("-p/"+sessionA+".jsonl", lines) }
	w.startWith("-p/"+sessionA+".jsonl", turn("hello"))
	write(shown(w.init(sessionA, cwd)) + turn("one"))
	before := c.n
	w.link(sessionA, "spec.md")
	w.noticed(sessionA, "[Document linked]\n- spec.md")
	write(shown("[Document linked]\n- spec.md") + turn("two"))
	behind := c.n
	write(turn("three"))
	write(back(behind, "four"))
	kit.Equal(t, "after a rewind behind the link Claude is told", w.hook(sessionA, true).Text, "")
	write(back(before, "five"))
	var got string
	w.until("Claude is told again", func() bool { got = w.hook(sessionA, true).Text; return got != "" })
	kit.Check(t, strings.HasPrefix(got, "[Session started]\n") && strings.HasSuffix(got, "\n  - spec.md"),
		"after a rewind before the link Claude is told %q", got)
	kit.Equal(t, "Claude is told once more", w.hook(sessionA, true).Text, "")
}
