package library

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestWorstLinesOnDisk: one line of 30 MB, whatever is in it, takes what a session and its timeline show from disk no
// more memory than a few copies of it, and no more than a screen of output.
func TestWorstLinesOnDisk(t *testing.T) {
	const size = 30 << 20
	record := func(kind, content string) string {
		return `{"type":"` + kind + `","uuid":"u","sessionId":"s","cwd":"/work/shop","timestamp":"2026-11-20T09:00:00Z","message":{"role":"` +
			kind + `","id":"m","model":"claude-opus-5","content":` + content + "}}\n"
	}
	fill := func(part string) string { return strings.Repeat(part, size/len(part)) }
	list := func(part string) string { return "[" + strings.TrimSuffix(fill(part+","), ",") + "]" }
	deep := strings.Repeat("[", 9900) + strings.Repeat("]", 9900)
	for name, line := range map[string]string{
		"markup":    record("assistant", `[{"type":"text","text":"`+fill(`# a\n- b *c*\n`)+`"}]`),
		"blocks":    record("assistant", list(`{"type":"text","text":"x"}`)),
		"nested":    record("assistant", `[{"type":"tool_use","id":"t","name":"Bash","input":{"x":`+list(deep)+`}}]`),
		"calls":     record("assistant", list(`{"type":"tool_use","id":"t","name":"Read","input":{"file_path":"a.go"}}`)),
		"results":   record("user", list(`{"type":"tool_result","tool_use_id":"t","content":"\u001b[31mx"}`)),
		"sequences": record("user", `"`+fill(`\u001b[31ma\u001b[0m `)+`"`),
	} {
		t.Run(name, func(t *testing.T) {
			text := record("user", `"hello"`) + line + record("user", `"bye"`)
			l := &Library{Roots: []string{put(t, map[string]string{usageOne: text})}}
			id := strings.TrimSuffix(usageOne[strings.LastIndex(usageOne, "/")+1:], ".jsonl")
			show := func() (any, error) { return l.Show(t.Context(), id, View{Messages: 200}) }
			timeline := func() (any, error) { return l.Timeline(t.Context(), id, Copy{}, nil, nil) }
			for what, read := range map[string]func() (any, error){"session": show, "timeline": timeline} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				got, err := read()
				runtime.ReadMemStats(&after)
				kit.Require(t, err == nil, "%s: %v", what, err)
				out, err := json.Marshal(got)
				took := after.TotalAlloc - before.TotalAlloc
				kit.Check(t, err == nil && took <= 8*size && len(out) <= 1<<20, "%s: %d MiB allocated, %d bytes shown (%v)", what, took>>20, len(out), err)
			}
		})
	}
}
