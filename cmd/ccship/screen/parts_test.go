package screen

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

func jsonPID() string { return strconv.Itoa(os.Getpid()) }

// TestBox edits a line as shells do.
func TestBox(t *testing.T) {
	ctrl := func(r rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: r, Mod: tea.ModCtrl} }
	var b box
	b.insert("fix the\ncart\x1b[31m 반올림")
	for _, c := range []struct {
		key  tea.KeyPressMsg
		want string
	}{
		{special(tea.KeyBackspace), "fix the cart[31m 반올"}, {ctrl('w'), "fix the cart[31m "}, {ctrl('w'), "fix the "},
		{special(tea.KeyHome), "fix the "}, {special(tea.KeyDelete), "ix the "}, {tea.KeyPressMsg{Code: 'F', Text: "F"}, "Fix the "},
		{special(tea.KeyRight), "Fix the "}, {ctrl('k'), "Fi"}, {special(tea.KeyLeft), "Fi"}, {ctrl('u'), "i"}, {ctrl('x'), "i"},
	} {
		if b.key(c.key); b.String() != c.want {
			t.Errorf("after %s: %q, want %q", c.key, b.String(), c.want)
		}
	}
	b.insert(strings.Repeat("long ", 20))
	text, at := b.show(10)
	kit.Check(t, at < 10 && strings.HasSuffix(text, "i"), "shown is %q, the cursor at %d", text, at)
}

// TestLongBox takes a text that was pasted by mistake: a frame measures it a few times, not once for each character.
func TestLongBox(t *testing.T) {
	var b box
	b.insert(strings.Repeat("반", 10_000_000))
	kit.Equal(t, "characters in the box", len(b.text), maxWritten)
	for _, columns := range []int{0, 1, 2, 9, 80} {
		text, at := b.show(columns)
		kit.Check(t, term.Width(text) <= columns && at <= max(0, columns-1), "in %d columns are %d, the cursor at %d", columns,
			term.Width(text), at)
	}
	allocations := testing.AllocsPerRun(1, func() { b.show(80) })
	kit.Check(t, allocations < 200, "a frame takes %v allocations", allocations)
	for range 2 * maxWritten {
		b.key(tea.KeyPressMsg{Code: 'x', Text: "x"})
	}
	kit.Equal(t, "characters in the box", len(b.text), maxWritten)
}

// TestMarkdown writes it for a terminal.
func TestMarkdown(t *testing.T) {
	w := writer{columns: 24}
	w.markdown(1, "# Title\nwords that are many more than a line\n> said\n1. one\n- [x] done\n---\n| a | b |\n"+
		"~~~diff\n- old\n+ new\n~~~\nthe\tend "+strings.Repeat("x", 30))
	want := " Title\n words that are many\n more than a line\n │ said\n 1. one\n • ☑ done\n ────────────────────\n | a | b |\n" +
		"   - old\n   + new\n the end\n xxxxxxxxxxxxxxxxxxxxxxx\n xxxxxxx"
	got := strings.Join(w.lines, "\n")
	kit.Check(t, got == want, "written is\n%s\nwant\n%s", got, want)
}

// TestAgo takes four columns at most.
func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{time.Second: "now", 59 * time.Minute: "59m", 47 * time.Hour: "47h",
		72 * time.Hour: "3d", 200 * 24 * time.Hour: "6mo", 3000 * 24 * time.Hour: "8y"} {
		got := ago(now, now.Add(-d))
		kit.Check(t, got == want, "%s is %q, want %q", d, got, want)
	}
}

// TestMouse moves what it is over, and selects what it clicks.
func TestMouse(t *testing.T) {
	h := sit(t, desk(t, serve(t, &answers{})))
	h.take(tea.WindowSizeMsg{Width: 80, Height: 16})
	wheel := func(y int, b tea.MouseButton) { h.take(tea.MouseWheelMsg{X: 3, Y: y, Button: b}) }
	wheel(3, tea.MouseWheelDown)
	kit.Check(t, h.m.at == 1, "row %d is selected", h.m.at)
	h.until("the conversation", h.quiet)
	_, begin := h.m.conversation(80)
	wheel(12, tea.MouseWheelUp)
	kit.Check(t, h.m.at == 1 && begin != 0 && h.m.scroll == -min(wheelLines, begin),
		"row %d, preview moved by %d from %d", h.m.at, h.m.scroll, begin)
	h.take(tea.MouseClickMsg{X: 3, Y: 3, Button: tea.MouseLeft}) // below the heading
	kit.Check(t, h.m.at == 0 && h.m.inList, "row %d is selected", h.m.at)
}

// TestKeys gives letters to the box, and to the list where it has the keys.
func TestKeys(t *testing.T) {
	d := desk(t, serve(t, &answers{}))
	h := sit(t, d)
	h.writeUntil("ho", "what was found", h.quiet)
	h.keys(special(tea.KeyDown))
	h.write("o") // opens; there is no browser
	h.until("the answer", h.quiet)
	kit.Check(t, h.m.box.String() == "ho" && h.m.wrong, "the box has %q, said is %q", h.m.box.String(), h.m.said)
	h.write("y")
	want := `copied: eval "$(ccship resume ` + clock + ` --here)"`
	kit.Check(t, h.m.said == want, "said %q", h.m.said)
	h.write("x") // is no key of the list
	h.until("what was found", h.quiet)
	kit.Check(t, h.m.box.String() == "hox" && !h.m.inList, "the box has %q", h.m.box.String())
	_, cmd := h.m.Update(special(tea.KeyEscape))
	kit.Check(t, cmd != nil, "Esc does not leave")
}

// TestGone shows what the prompt history has of a session that is nowhere; there is nothing to resume.
func TestGone(t *testing.T) {
	h := sit(t, desk(t, serve(t, &answers{})))
	gone := ship
	r := foundRow(h.m.source.Library.Server, &remote.RankedSession{Gone: &gone, Hits: []protocol.Hit{{Kind: "history", Line: 7,
		Snippet: []protocol.Piece{{Text: "fix the "}, {Text: "bell", Match: true}}}}})
	h.m.show(page{rows: []row{r}})
	h.m.passages[r.key()] = &conversation{}
	lines, _ := h.m.conversation(80)
	kit.Check(t, len(lines) == 1 && lines[0] == "fix the bell", "the preview is %q", lines)
	h.keys(special(tea.KeyEnter))
	h.until("the refusal", h.quiet)
	kit.Check(t, h.m.chosen.Session == "" && h.m.wrong, "chosen is %+v; said %q", h.m.chosen, h.m.said)
}

// TestNarrow writes a project into the box, as the search language has it, and takes it out again.
func TestNarrow(t *testing.T) {
	for query, want := range map[string][2]string{
		"cart": {"cart", ""}, "project:shop": {"", "shop"}, `a project:"my shop" b`: {"a b", "my shop"},
		"-project:shop": {"-project:shop", ""}, "a project:": {"a project:", ""},
	} {
		text, project := split(query)
		kit.Check(t, [2]string{text, project} == want, "%q is %q in %q", query, text, project)
	}
	h := sit(t, desk(t, serve(t, &answers{})))
	h.writeUntil("total", "what was found", h.quiet)
	for _, want := range []string{"project:shop total", "total"} {
		h.keys(special(tea.KeyTab))
		h.until("what was found", h.quiet)
		kit.Check(t, h.m.box.String() == want, "the box has %q, want %q", h.m.box.String(), want)
	}
	h.keys(tea.KeyPressMsg{Code: 'u', Mod: tea.ModCtrl}, special(tea.KeyTab))
	h.until("the project's", h.quiet)
	rows := h.m.page.rows
	kit.Check(t, len(rows) == 2 && rows[0].group == groupHere, "the project's sessions are %+v", rows)
}

// TestLongChange shows both sides of a long edit.
func TestLongChange(t *testing.T) {
	w := writer{columns: 20}
	w.change(library.Change{Old: "same\n" + strings.Repeat("old\n", 20) + "end", New: "same\n" + strings.Repeat("new\n", 20) + "end"})
	want := strings.Repeat("    - old\n", 7) + "    …\n" + strings.Repeat("    + new\n", 7) + "    …"
	kit.Equal(t, "written is", strings.Join(w.lines, "\n"), want)
}

// TestUnescaped leaves what a program wrote, without colours and titles.
func TestUnescaped(t *testing.T) {
	for text, want := range map[string]string{"a\x1b[1;31mred\x1b[0m b": "ared b", "\x1b]0;title\ax": "x", "\x1b]8;;u\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1b[31": " [31", "\x1b": "", "a\tb\r\n": "a    b \n"} {
		got := clean(text)
		kit.Check(t, strings.TrimLeft(got, " ") == strings.TrimLeft(want, " "), "%q is %q, want %q", text, got, want)
	}
}

// TestHostilePassages: whatever others wrote, no more than text reaches the terminal.
func TestHostilePassages(t *testing.T) {
	bad := "x\x1b]0;y\a\x9b31m\r\b\u202e\u200b"
	c := conversation{}
	for _, kind := range []string{"user", "assistant", "tool_start", "tool_complete", "error", "compaction", bad} {
		c.passages = append(c.passages, library.Passage{Message: library.Message{Kind: kind, Text: bad + "\n" + bad}, Tool: bad, Failed: true,
			Changes: []library.Change{{Old: bad, New: "~~~" + bad}}})
	}
	c.draw(&row{snippet: []protocol.Piece{{Text: bad}}}, 40, false)
	text := strings.Join(c.lines, "")
	kit.Check(t, !strings.ContainsFunc(text, term.Steers), "%q", text)
}

// TestComplete completes what is known of a filter, before the cursor.
func TestComplete(t *testing.T) {
	h := sit(t, desk(t, serve(t, &answers{})))
	for _, c := range [][2]string{{"a project:SH", "a project:shop"}, {"machine:t", "machine:tower"}, {"-kind:pro", "-kind:prompt"},
		{"is:", "is:error"}, {"is:xyz", "project:shop is:xyz"}, {"project:shop a", "a"}, {"file:", "project:shop file:"}} {
		h.m.box.set(c[0])
		h.m.page.rows = []row{{Item: library.Item{Project: "shop"}}}
		h.m.at = 0
		h.keys(special(tea.KeyTab))
		got := h.m.box.String()
		kit.Check(t, got == c[1], "%q becomes %q, want %q", c[0], got, c[1])
	}
}
