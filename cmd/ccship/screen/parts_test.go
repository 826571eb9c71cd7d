package screen

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/ccship/ccship/cmd/ccship/showtest"
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

// frame is what is seen, checked to fit the window.
func (h *hand) frame() string {
	h.Helper()
	text := h.m.View().Content
	lines := strings.Split(text, "\n")
	kit.Equal(h, "lines in a window", len(lines), h.m.height)
	for i, line := range lines {
		n := term.Width(line)
		kit.Check(h, n <= h.m.width, "line %d has %d columns in a window of %d: %q", i, n, h.m.width, line)
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestFrames is what people see with NO_COLOR: what ran last, what was found, the keys, and a wide window.
func TestFrames(t *testing.T) {
	h := sit(t, desk(t, serve(t, &answers{})))
	frames := []string{h.frame()}
	h.writeUntil("total", "what was found", h.quiet)
	frames = append(frames, h.frame())
	h.keys(special(tea.KeyDown), special(tea.KeyF1))
	frames = append(frames, h.frame())
	h.keys(special(tea.KeyF1), special(tea.KeyTab))
	h.until("the project's", h.quiet)
	h.take(tea.WindowSizeMsg{Width: 140, Height: 30})
	frames = append(frames, h.frame())
	showtest.Golden(t, "frames.txt", strings.Join(frames, "=====\n"))
	text := strings.Join(frames, "")
	kit.Check(t, !strings.ContainsAny(text, "\x1b\x07"), "something steers the terminal: %q", text)
	for _, size := range [][2]int{{20, 5}, {40, 12}, {131, 8}, {132, 5}, {300, 80}} {
		h.take(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		h.frame()
	}
}

// TestUnknownProject: a project alone that there is not leaves no empty list without a word.
func TestUnknownProject(t *testing.T) {
	h := sit(t, desk(t, serve(t, &answers{})))
	h.writeUntil("project:shpo", "what the server says of it", func() bool { return h.m.page.note == "there is no project shpo" })
	kit.Has(t, "not in sight", h.frame(), "there is no project shpo")
}

// TestColours has them where they are wanted, and none where they are not.
func TestColours(t *testing.T) {
	h := sit(t, desk(t, serve(t, &answers{})))
	h.m.colours = true
	h.writeUntil("total", "what was found", h.quiet)
	h.keys(special(tea.KeyPgDown))
	for _, want := range []string{"\x1b[7m›", "\x1b[1;33mtotal\x1b[0m", "\x1b[31m- round(x)", "\x1b[32m+ x"} {
		kit.Has(t, "is not in", h.m.View().Content, want)
	}
}

// TestLateAnswers holds answers back: one that comes late never replaces that of a later question.
func TestLateAnswers(t *testing.T) {
	s := &answers{}
	first, second := s.gate("to"), s.gate("tot")
	h := sit(t, desk(t, serve(t, s)))
	h.write("to")
	h.writeUntil("t", "two questions", func() bool { return len(s.all()) == 2 })
	h.write("al") // waits, whatever is written meanwhile
	kit.Require(t, h.m.asks.waiting && len(h.m.asks.flying) == 2, "%+v", h.m.asks)
	close(second)
	h.until("the answer to the second question, and to the last", func() bool { return h.m.page.query == "total" })
	got := s.all()
	slices.Sort(got[:2]) // they are under way at once
	kit.Check(t, slices.Equal(got, []string{"to", "tot", "total"}), "asked for %q", got)
	close(first)
	h.until("the late answer", h.quiet)
	kit.Check(t, h.m.page.query == "total" && len(h.m.page.rows) == 3, "a late answer is shown: %q", h.m.page.query)
}

// TestGivenUp gives up the oldest question when it holds up a newer one.
func TestGivenUp(t *testing.T) {
	s := &answers{}
	defer close(s.gate("to"))
	defer close(s.gate("tot"))
	h := sit(t, desk(t, serve(t, s)))
	h.writeUntil("tot", "two questions", func() bool { return len(s.all()) == 2 })
	oldest := h.m.asks.flying[0].number
	h.take(overdueMsg{oldest}) // nothing waits for it
	kit.Require(t, len(h.m.asks.flying) == 2, "a question that holds up nothing is given up")
	h.write("a")
	h.take(overdueMsg{oldest})
	h.until("the answer to the last", func() bool { return h.m.page.query == "tota" })
}

// TestAway shows what is on disk while the server is away, and says so; then the server again.
func TestAway(t *testing.T) {
	server := httptest.NewServer(&answers{})
	d := desk(t, server.URL)
	at := now
	d.Now = func() time.Time { return at }
	onDisk(t, d, cart, talk())
	onDisk(t, d, clock, []json.RawMessage{line("user", "x", "", map[string]any{"role": "user", "content": "What time is it?"})})
	server.Close()
	h := sit(t, d)
	if text := h.frame(); !strings.Contains(text, "on this disk only: the server cannot be reached") ||
		!strings.Contains(text, "What time is it?") {
		t.Errorf("the screen is\n%s", text)
	}
	h.writeUntil(`"rounded twice" total`, "what was found", h.quiet)
	kit.Check(t, len(h.m.page.rows) == 0, "found %+v", h.m.page.rows) // ** is between the words
	h.keys(tea.KeyPressMsg{Code: 'u', Mod: tea.ModCtrl})
	h.writeUntil(`"math.Round(sum)" TOTAL`, "what was found", h.quiet)
	r := h.m.selected()
	kit.Require(t, r != nil && r.Session == cart && r.kind == "answer" && r.line == 1, "found %+v", h.m.page.rows)
	if text := h.frame(); !strings.Contains(text, "math.Round(sum)") || !strings.Contains(text, "most words in one line first: the server") {
		t.Errorf("the preview is not at the place:\n%s", text)
	}

	h.m.source.Library.Server = desk(t, serve(t, &answers{})).Library.Server
	at = at.Add(time.Minute)
	h.writeUntil("s", "the server again", h.quiet)
	kit.Check(t, h.m.page.away == "" && len(h.m.page.rows) == 3, "%+v", h.m.page)
}

// TestResumeHere takes a session that is on this disk as it is, unless it is open already.
func TestResumeHere(t *testing.T) {
	d := desk(t, "")
	folder := t.TempDir()
	records := talk()
	for i := range records {
		records[i] = json.RawMessage(strings.ReplaceAll(string(records[i]), "/home/kim/shop", folder))
	}
	onDisk(t, d, cart, records)
	h := sit(t, d)
	h.keys(special(tea.KeyEnter))
	h.until("the choice", h.quiet)
	kit.Check(t, h.m.chosen.Session == cart && h.m.chosen.Folder == folder, "chosen is %+v; said %q", h.m.chosen, h.m.said)
	live := d.Library.Roots[0] + "/../sessions"
	kit.Must(t, os.MkdirAll(live, 0o700))
	text, _ := json.Marshal(map[string]any{"sessionId": cart, "status": "idle"})
	kit.Must(t, os.WriteFile(live+"/"+jsonPID()+".json", text, 0o600))
	h = sit(t, d)
	r := h.m.selected()
	kit.Check(t, r != nil && r.state == "waits for you", "the session that is open is %+v", r)
	h.keys(special(tea.KeyEnter))
	h.until("the refusal", h.quiet)
	kit.Check(t, h.m.chosen.Session == "" && strings.Contains(h.frame(), "has this session open"),
		"chosen is %+v; said %q", h.m.chosen, h.m.said)
}
