package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// TestListsAreBounded: what a session has beside its lines fills no page: checkpoints with long lists of files,
// documents with long names, past versions and epochs.
func TestListsAreBounded(t *testing.T) {
	m := newMeter(t)
	h := head("s")
	m.put(t, h, spoken("user", "go on"))
	path := func(i int) string { return fmt.Sprintf("%s/%d", strings.Repeat("a'b/", 1000), i) }
	var files []string
	for i := range 1000 {
		files = append(files, path(i))
	}
	const many = 12
	for i := range many {
		m.markAs(t, h, server.Checkpoint{ID: fmt.Sprint("c", i), Trigger: "manual", Summary: strings.Repeat("s", 64<<10), ActiveFiles: files, Created: noon})
	}
	var events []server.DocumentEvent
	for i := range 500 {
		events = append(events, server.DocumentEvent{Path: path(i), Change: server.Linked, AddedAt: noon, At: noon, Line: -1})
	}
	m.putDocuments(t, h, events...)
	for i := range 700 { // names as long as they may be
		g := h
		if i%10 == 0 {
			g.Epoch = fmt.Sprint(strings.Repeat("e", 1000), i)
		} else {
			g.Generation, g.Epoch = int64(i), strings.Repeat("e", 1000)+"0"
		}
		m.put(t, g, spoken("user", "again"))
	}
	for _, sub := range []string{"", "/context", "/artifacts", "/compare"} {
		m.page(t, sessionPath("s", sub), 1)
	}
	t.Logf("worst: %d MiB allocated, %d kB written", m.worst.allocated>>20, m.worst.written>>10)
	found := 0
	q := server.CheckpointQuery{Session: "s", Limit: 1000}
	for pages := 0; ; pages++ {
		page, err := m.store.Checkpoints(t.Context(), server.Scope{All: true}, q)
		kit.Require(t, err == nil && len(page.List) <= 2, "a page of %d, %v", len(page.List), err)
		if found += len(page.List); page.Next == "" {
			break
		}
		q.After = page.Next
	}
	kit.Equal(t, "checkpoints on all pages", found, many)
}
