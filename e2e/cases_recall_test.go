//go:build unix

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestTimelineAndCalls asks both programs what happened in a session and for its calls: from disk and from the server,
// with and without them.
func TestTimelineAndCalls(t *testing.T) {
	w := aloneWorld(t)
	w.start()
	c := newTalk(sessionA, w.cwd())
	path := w.path("-work-shop", sessionA+".jsonl")
	test := map[string]any{"command": "go test ./cart"}
	for _, lines := range [][]byte{
		c.prompt("make the tests pass"), c.calls(10_000, "t1", "Bash", test), c.returns("t1", "Exit code 1\ncart.go:3: undefined: total", true),
		c.calls(11_000, "t2", "Edit", map[string]any{"file_path": "/work/shop/cart.go", "old_string": "a", "new_string": "b"}),
		c.returns("t2", "ok", false), c.calls(12_000, "t3", "Bash", test),
	} {
		w.add(path, lines)
	}
	c.clock = c.clock.Add(9 * time.Minute) // the user is away
	w.add(path, c.returns("t3", "ok cart 0.1s", false))
	w.add(path, c.says(13_000, "Done."))
	w.add(path, c.record(map[string]any{"type": "system", "subtype": "turn_duration", "durationMs": 8000}))
	w.addAndSync(path, c.compact(167_000, 9_000))
	w.derived("continued", sessionA)
	for _, args := range [][]string{{"search", "file:cart.go"}, {"search", "\"go test\" kind:command"}, {"search", "tool:Bash"},
		{"search", "tool:ba* kind:error"}, {"search", "undefined tool:Bash"}, {"search", "ok file:cart.go"}} {
		if got := w.look("", 0, args...).stdout; !strings.Contains(got, sessionA[:8]) {
			t.Errorf("%v:\n%s", args, got)
		}
	}
	for _, args := range [][]string{{"search", "undefined tool:Edit"}, {"search", "undefined file:cart.go"}} {
		if got := w.look("", 0, args...).stdout; strings.Contains(got, sessionA[:8]) {
			t.Errorf("%v:\n%s", args, got)
		}
	}
	var local, stored timelineDocument
	machine := w.exact.digest(sessionA).Machine
	eventually(t, "disk and server tell of as many moments", time.Minute, func() bool { // a slow daemon tells of no checkpoints
		local = timelineOf(t, w.look("", 0, "show", "--timeline", sessionA, "--json").stdout)
		stored = timelineOf(t, w.look("", 0, "show", "--timeline", sessionA, "--json", "--machine", machine).stdout)
		return local.Source == "local" && stored.Source == "server" && len(local.Moments) >= 4 && len(local.Moments) == len(stored.Moments)
	})
	for i, m := range stored.Moments {
		if !strings.Contains(m.URL, "/sessions/"+sessionA+"/L/") {
			t.Errorf("the address is %q", m.URL)
		}
		if m.URL = ""; m != local.Moments[i] {
			t.Errorf("on disk %+v, on the server %+v", local.Moments[i], m)
		}
	}
	if p := local.Moments[0]; p.Kind != "prompt" || p.Took != 8000 || p.Waited < 539_000 {
		t.Errorf("the turn is %+v", p)
	}
	if text := w.look("", 0, "show", "--timeline=prompt,compaction", sessionA).stdout; !strings.Contains(text, "8.0 s, waited 9 min") ||
		!strings.Contains(text, "167k tokens → 9k tokens") || strings.Contains(text, "Exit code 1") {
		t.Errorf("in words:\n%s", text)
	}
	w.look("nothing to search for", 2, "search")
	w.d.MustStop(t)
	w.gate.set(unreachable)
	if got := timelineOf(t, w.look("", 0, "show", "--timeline", sessionA, "--json").stdout); len(got.Moments) < 4 || got.Moments[0] != local.Moments[0] {
		t.Errorf("offline %+v", got)
	}
}

// timelineDocument is what `show --timeline --json` prints.
type timelineDocument struct {
	Source  string
	Moments []struct {
		Line   int64
		Kind   string
		Text   string
		Took   int64 `json:"duration_ms"`
		Waited int64 `json:"waited_ms"`
		URL    string
	}
}

func timelineOf(t *testing.T, text string) (d timelineDocument) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err, text)
	}
	return d
}
