package daemon

import (
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

func (w *world) droppedLines() []control.Advice {
	w.t.Helper()
	return slices.DeleteFunc(w.status().Advice, func(n control.Advice) bool { return n.Kind != "dropped_lines" })
}

// TestRewritesAreShown tells a rewrite that took lines out, with their number, also after a restart; not one that brought
// the same lines again.
func TestRewritesAreShown(t *testing.T) {
	w := newWorld(t)
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 20))
	w.startWith("-p/"+sessionB+".jsonl", records("/home/kim/shop", 0, 20))
	w.server.lagging = 2
	w.rewrite("-p/"+sessionB+".jsonl", record("/home/kim/shop", 99)+records("/home/kim/shop", 0, 20))          // all of them again
	w.rewrite("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5)+records("/home/kim/shop", 12, 15)+"\n") // 12 fewer
	w.sync()
	w.until("the rewrite is told", func() bool { return len(w.droppedLines()) > 0 })
	for _, when := range []string{"at once", "after a restart"} {
		got := w.droppedLines()
		kit.Check(t, len(got) == 1 && strings.Contains(got[0].Text, "took 12 lines out of session "+sessionA[:8]+" (shop)") &&
			strings.HasPrefix(got[0].Hint, "ccship restore "+sessionA+" --generation 0 "),
			"%s: %+v", when, got)
		w.restart()
	}
	w.must(w.forget(sessionA))
	got := w.droppedLines()
	kit.Check(t, len(got) == 0, "of a forgotten session: %+v", got)
}
