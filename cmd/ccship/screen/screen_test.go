package screen

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/e2e/kit"
)

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
	if text := h.frame(); !strings.Contains(text, "math.Round(sum)") || !strings.Contains(text, "lines with all words, newest first: the server") {
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
