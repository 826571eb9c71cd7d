package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// said is a line of a conversation: a prompt or an answer, below the line with the number parent; -1: below none.
func said(n, parent int, kind, text string) string {
	above := "null"
	if parent >= 0 {
		above = fmt.Sprintf(`"u%d"`, parent)
	}
	content := fmt.Sprintf("%q", text)
	if kind == "assistant" {
		content = fmt.Sprintf(`[{"type":"text","text":%q}]`, text)
	}
	return fmt.Sprintf(`{"type":%q,"uuid":"u%d","parentUuid":%s,"version":"2.1.42","timestamp":"2026-08-20T09:%02d:%02d.000Z",`+
		`"message":{"role":%q,"id":"m%d","model":"m","content":%s}}`, kind, n, above, n/60%60, n%60, kind, n, content)
}

// talk is a conversation of lines from number from to before to, each below the one before it.
func talk(from, to, parent int) (lines []string) {
	for n := from; n < to; n++ {
		kind := "user"
		if n%2 == 1 {
			kind = "assistant"
		}
		lines = append(lines, said(n, parent, kind, fmt.Sprintf("text %d", n)))
		parent = n
	}
	return lines
}

// TestRewindBeyondThePage: a rewind is one over the whole session. Its page shows it whatever lies on other pages, these
// show what it removed, and no page takes a parent that it does not hold for a rewind.
func TestRewindBeyondThePage(t *testing.T) {
	const removed = "removed by a rewind"
	s := loggedIn(t)
	lines := append(talk(0, 700, -1), talk(700, 1000, 99)...)
	h := head("far")
	s.put(t, h, lines...)
	check := func(what string, pages map[string]string) {
		t.Helper()
		for from, want := range pages {
			got := items(t, s.get(t, sessionPath("far", "", "from", from)))
			rewinds, left := 0, 0
			for id, text := range got {
				if strings.HasSuffix(id, "-rewind") {
					rewinds++
				}
				if strings.Contains(text, removed) {
					left++
				}
			}
			kit.Equal(t, fmt.Sprintf("%s, from %s", what, from),
				fmt.Sprintf("%d rewinds, %d of %d left", rewinds, left, len(got)-rewinds), want)
		}
	}
	pages := map[string]string{"0": "0 rewinds, 200 of 300 left", "300": "0 rewinds, 300 of 300 left",
		"600": "1 rewinds, 100 of 300 left", "900": "0 rewinds, 0 of 100 left"}
	check("derived", pages)
	kit.Must(t, s.store.ResetDerived(t.Context()))
	check("not derived", pages)
	export := s.get(t, sessionPath("far", "/export", "format", "html"))
	kit.Equal(t, "items of which the export says that they were removed", strings.Count(export, removed), 600)
	h.Generation, h.RewoundTo = 1, 700
	s.put(t, h, talk(700, 760, 699)...)
	check("the next generation", map[string]string{"0": "0 rewinds, 0 of 300 left", "600": "0 rewinds, 0 of 161 left"})
	old := items(t, s.get(t, sessionPath("far", "", "generation", "0", "from", "600")))
	kit.Check(t, strings.Contains(old["L699"], removed) && old["L700-rewind"] != "", "the generation before: %q, %q",
		old["L699"], old["L700-rewind"])
}

// TestRewindAcrossACompaction: what stays is not shown as removed, and what was said before the compaction and after the
// message gone back to is.
func TestRewindAcrossACompaction(t *testing.T) {
	s := loggedIn(t)
	boundary := `{"type":"system","subtype":"compact_boundary","uuid":"u4","parentUuid":null,"logicalParentUuid":"u3",` +
		`"timestamp":"2026-08-20T09:00:04.000Z","compactMetadata":{"trigger":"manual","preTokens":60}}`
	lines := append(talk(0, 4, -1), boundary, said(5, 4, "user", "on"), said(6, 5, "assistant", "text 6"))
	s.put(t, head("across"), append(lines, said(7, 1, "user", "back"))...)
	got := items(t, s.get(t, sessionPath("across", "")))
	for n := range 8 {
		id := fmt.Sprintf("L%d", n)
		removed := strings.Contains(got[id], "removed by a rewind")
		kit.Check(t, removed == (n >= 2 && n < 7 && n != 4), "%s is removed: %v: %q", id, removed, got[id])
	}
	kit.Has(t, "the rewind is", got["L7-rewind"], "Rewound to line 2")
}

// TestQueuedPromptsAreShown: a prompt that only the queue has is a prompt, where it was used; one with a record of its own
// is shown once.
func TestQueuedPromptsAreShown(t *testing.T) {
	s := loggedIn(t)
	queue := func(operation, text string, second int) string {
		return fmt.Sprintf(`{"type":"queue-operation","operation":%q,"timestamp":"2026-08-20T10:00:%02d.000Z","content":%q}`, operation, second, text)
	}
	s.put(t, head("queue"), append(talk(0, 2, -1),
		queue("enqueue", "only queued", 1), queue("remove", "", 2), said(4, 1, "assistant", "noted"),
		queue("enqueue", "recorded too", 3), queue("remove", "", 4), said(7, 4, "user", "recorded too"),
		`{"type":"system","subtype":"turn_duration","uuid":"u8","parentUuid":"u7","durationMs":5}`,
		`{"type":"user","uuid":"u9","parentUuid":null,"planContent":"# Plan","timestamp":"2026-08-20T11:00:00.000Z","message":{"role":"user","content":"do it"}}`,
	)...)
	got := items(t, s.get(t, sessionPath("queue", "")))
	itemsHave(t, got, map[string]string{"L3": "only queued", "L6": "recorded too", "L9-cleared": "Context cleared", "L9": "do it"})
	text, there := got["L7"]
	kit.Check(t, !there, "the copy is shown: %q", text)
	for _, page := range []string{s.get(t, sessionPath("queue", "", "mode", "prompts")), s.get(t, sessionPath("queue", "/export", "format", "md"))} {
		kit.Check(t, strings.Count(page, "only queued") == 1 && strings.Count(page, "recorded too") == 1,
			"prompts are not there once:\n%s", page)
	}
}

// TestStillReading: as long as lines are not derived, pages say so instead of numbers of a part.
func TestStillReading(t *testing.T) {
	s := loggedIn(t)
	s.put(t, head("read"), talk(0, 4, -1)...)
	pages := []string{sessionPath("read", ""), "/"}
	for _, path := range pages {
		mustLack(t, s.get(t, path), "still reading")
	}
	kit.Must(t, s.store.ResetDerived(t.Context()))
	for _, path := range pages {
		mustHave(t, s.get(t, path), "still reading")
	}
}
