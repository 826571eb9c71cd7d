package wire_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/wire"
)

// TestPartBombs: a request of millions of empty parts, which is small as it is sent, is refused before they take memory.
func TestPartBombs(t *testing.T) {
	array := func(part string, size int) string {
		return "[" + strings.Repeat(part+",", size/(len(part)+1)) + part + "]"
	}
	head := `{"session_id":"s","ccship":{"v":1,"machine":"m","epoch":"e"},`
	checkpoints := func(b []byte) error { _, err := wire.ParseCheckpoints(b); return err }
	documents := func(b []byte) error { _, err := wire.ParseDocuments(b); return err }
	lines := func(b []byte) error { _, err := wire.ParseLines(b); return err }
	for name, c := range map[string]struct {
		parse func([]byte) error
		body  string
	}{
		"checkpoints": {checkpoints, head + `"checkpoints":` + array("{}", wire.MaxItemsBody) + "}"},
		"null":        {checkpoints, head + `"checkpoints":` + array("null", wire.MaxItemsBody) + "}"},
		"files":       {checkpoints, head + `"checkpoints":[{"active_files":` + array(`""`, wire.MaxItemsBody) + "}]}"},
		"documents":   {documents, head + `"events":` + array("{}", wire.MaxItemsBody) + "}"},
		"entries":     {lines, head + `"entries":` + array(`{"line_index":0}`, 32<<20) + "}"},
		"edges":       {lines, `{"session_id":"s","ccship":{"v":1,"machine":"m","epoch":"e","edges":` + array(`[0,"",""]`, 32<<20) + `},"entries":[]}`},
	} {
		body := []byte(c.body)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := c.parse(body)
		runtime.ReadMemStats(&after)
		took := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%s: %d MiB, %v", name, took, err)
		kit.Check(t, err != nil && took <= 64, "%s: %d MiB, %.100s", name, took, fmt.Sprint(err))
	}
}
