package daemon

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
)

func (w *world) messages(session string) control.Messages {
	w.t.Helper()
	return kit.Try(w.client.Messages(context.Background(), control.MessagesQuery{Session: session})).Must(w.t)
}

// said is the messages in short.
func said(m control.Messages) (lines []string) {
	for _, x := range m.Messages {
		lines = append(lines, strings.TrimSpace(x.Type+" "+x.Role+" "+x.Content+x.ToolUseID+" "+x.Output))
	}
	return lines
}

// figure is one of the metrics.
func (w *world) figure(name string) (value int64) {
	w.t.Helper()
	res := kit.Try(w.contract().http.Get("http://localhost/metrics")).Must(w.t)
	defer res.Body.Close()
	var text bytes.Buffer
	w.must(text.ReadFrom(res.Body))
	for line := range strings.Lines(text.String()) {
		if n, err := fmt.Sscanf(line, "ccship_"+name+" %d", &value); n == 1 && err == nil {
			return value
		}
	}
	w.t.Fatalf("no metric %s in\n%s", name, text.String())
	return 0
}

func transcriptOf(session string) string { return "-home-kim-shop/" + session + ".jsonl" }

// openTestState opens the state of a world whose daemon is stopped.
func openTestState(t *testing.T, w *world) *projection.DB {
	t.Helper()
	db := kit.Try(projection.Open(t.Context(), state.Options{Path: filepath.Join(w.cfg.StateDir, "state.db")})).Must(t)
	t.Cleanup(func() { db.State.Close() })
	return db
}

func loadFacts(t *testing.T, db *state.DB) map[tail.FileID]state.Routing {
	t.Helper()
	return kit.Try(db.Files.Routings(t.Context())).Must(t)
}
