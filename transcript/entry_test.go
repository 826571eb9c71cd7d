package transcript

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestAppendEntry(t *testing.T) {
	tests := []struct{ line, want string }{
		{`{"a":1}`, `{"line_index":12,"a":1}`},
		{`{}`, `{"line_index":12}`},
		{`{  }`, `{"line_index":12  }`},
		{` { "a" : 1 } ` + "\r", `{"line_index":12, "a" : 1 }`},
		{`{"line_index":3,"a":1}`, `{"line_index":12,"line_index":3,"a":1}`},
		{`{"a":"\ud83d","a":2}`, `{"line_index":12,"a":"\ud83d","a":2}`},
	}
	for _, tt := range tests {
		got := AppendEntry([]byte("x"), []byte(tt.line), Scan([]byte(tt.line)), 12)
		kit.Equal(t, fmt.Sprintf("AppendEntry(%q)", tt.line), string(got), "x"+tt.want)
	}
}

func TestAppendOpaque(t *testing.T) {
	got := AppendOpaque(nil, []byte("\x00\xff\r"), 0)
	kit.Equal(t, "AppendOpaque", string(got),
		`{"line_index":0,"type":"ccship.opaque","encoding":"base64","data":"AP8N"}`)
	// An empty line is a line of its own, not one that was not sent.
	_, raw, kind, err := RestoreEntry(AppendOpaque(nil, nil, 3))
	kit.Check(t, raw != nil && len(raw) == 0 && kind == OpaqueEntry && err == nil, "empty line came back as %#v, %d, %v", raw, kind, err)
}

func TestOversize(t *testing.T) {
	sum := sha256.Sum256([]byte("long"))
	entry := AppendOversize(nil, 4, 1<<40, 99<<20, sum)
	want := `{"line_index":4,"type":"ccship.oversize","offset":1099511627776,"length":103809024,"sha256":"fc66f021c67d064c`
	kit.Check(t, strings.HasPrefix(string(entry), want) && json.Valid(entry), "AppendOversize = %s", entry)
	index, raw, kind, err := RestoreEntry(entry)
	kit.Check(t, index == 4 && raw == nil && kind == OversizeEntry && err == nil, "RestoreEntry = %d, %q, %d, %v",
		index, raw, kind, err)
	o, err := ParseOversize(entry)
	kit.Check(t, o == (Oversize{1 << 40, 99 << 20, sum}) && err == nil, "ParseOversize = %v, %v", o, err)
	for _, broken := range []string{"", "{}", string(entry[:50]), strings.Replace(string(entry), "1099", "01099", 1)} {
		kit.Err(t, fmt.Sprintf("ParseOversize(%s)", broken), ErrEntry)(ParseOversize([]byte(broken)))
	}
}

// What a plain client sends is kept as it came, unless it begins exactly as ours do.
func TestRestoreEntryOfOthers(t *testing.T) {
	tests := []struct {
		entry string
		index int64
		raw   string
	}{
		{`{"line_index":0,"type":"user"}`, 0, `{"type":"user"}`},
		{` {"line_index":5,"a":1} `, 5, `{"a":1}`},
		{`{"line_index": 5, "a": 1}`, 5, `{"line_index": 5, "a": 1}`},
		{`{"line_index":5 ,"a":1}`, 5, `{"line_index":5 ,"a":1}`},
		{`{"a":1,"line_index":6}`, 6, `{"a":1,"line_index":6}`},
		{`{"a":1,"line_index":6,"line_index":7}`, 6, `{"a":1,"line_index":6,"line_index":7}`},
		{`{"line\u005findex":6}`, 6, `{"line\u005findex":6}`},
		{`{"line_index":9223372036854775807}`, 1<<63 - 1, `{}`},
		{`{"line_index":1,"type":"ccship.opaque"}`, 1, `{"type":"ccship.opaque"}`},
		{`{"type":"ccship.opaque","line_index":1}`, 1, `{"type":"ccship.opaque","line_index":1}`},
	}
	for _, tt := range tests {
		entry := []byte(tt.entry)
		index, raw, kind, err := RestoreEntry(entry)
		kit.Check(t, index == tt.index && string(raw) == tt.raw && kind == ObjectEntry && err == nil,
			"RestoreEntry(%s) = %d, %s, %d, %v; want %d, %s", tt.entry, index, raw, kind, err, tt.index, tt.raw)
		kit.Equal(t, "RestoreEntry wrote to its argument", string(entry), tt.entry)
	}
}

func TestRestoreEntryRefuses(t *testing.T) {
	opaque := `{"line_index":1,"type":"ccship.opaque","encoding":"base64","data":`
	sum := strings.Repeat("0", 64)
	for _, entry := range []string{
		``, ` `, `null`, `[1]`, `{"a":1}`, `{"line_index":1`, `{"line_index":1}}`, `{"line_index":1}{"line_index":2}`,
		`{"line_index":-1}`, `{"line_index":"1"}`, `{"line_index":1.0}`, `{"line_index":1e3}`, `{"line_index":null}`,
		`{"line_index":9223372036854775808}`, `{"line_index":1,}`, "{\"line_index\":1,\"a\":\"\xff\"}",
		`{"a":{"line_index":1}}`, `{"line_index":-0}`,
		opaque + `"A"}`, opaque + `"AP8N","x":1}`, opaque + `"AB=="}`, opaque + `"A\nP8N"}`, opaque + `"AP8N" }`,
		`{"line_index":1,"type":"ccship.oversize","offset":1,"length":2,"sha256":"00"}`,
		`{"line_index":1,"type":"ccship.oversize","offset":-1,"length":2,"sha256":"` + sum + `"}`,
		`{"line_index":1,"type":"ccship.oversize","offset":01,"length":2,"sha256":"` + sum + `"}`,
		`{"line_index":1,"type":"ccship.oversize","offset":1,"length":2,"sha256":"` + sum + `","x":1}`,
		`{"line_index":1,"type":"ccship.oversize","offset":1}`,
	} {
		kit.Err(t, fmt.Sprintf("RestoreEntry(%q)", entry), ErrEntry)(RestoreEntry([]byte(entry)))
	}
}

// FuzzEntry: every line's entry is valid JSON and restores the line byte for byte.
func FuzzEntry(f *testing.F) {
	for _, s := range []string{
		``, "\r", `{}`, `{  }`, ` {"a":1}` + "\r", `{"line_index":3}`, `{"line_index":3,"type":"ccship.opaque"}`,
		`{"a":1}{"b":2}`, "\x00\x00", `{"a":"\ud83d"}`, `{ "a" :1,"a":2 }`, `{"a":"b`,
		`{"type":"ccship.opaque","encoding":"base64","data":"e30="}`,
		`{"type":"ccship.oversize","offset":1,"length":2,"sha256":"00"}`,
	} {
		f.Add([]byte(s), int64(7))
	}
	f.Fuzz(func(t *testing.T, line []byte, index int64) {
		index &= 1<<63 - 1
		kind := OpaqueEntry
		var before, entry, after []byte
		if l := Scan(line); l.Shape == Object {
			kind = ObjectEntry
			before, after = line[:l.Start], line[l.End:]
			entry = AppendEntry(nil, line, l, index)
		} else {
			entry = AppendOpaque(nil, line, index)
		}
		kit.Require(t, json.Valid(entry), "entry of %q is not JSON: %q", line, entry)
		gotIndex, raw, gotKind, err := RestoreEntry(entry)
		kit.Require(t, err == nil && gotIndex == index && gotKind == kind, "RestoreEntry(%q) = %d, %d, %v; want %d, %d",
			entry, gotIndex, gotKind, err, index, kind)
		got := bytes.Join([][]byte{before, raw, after}, nil)
		kit.Require(t, bytes.Equal(got, line), "line %q came back as %q", line, got)
	})
}

// TestKnown lists every type and member that is known. What is read must be among them.
func TestKnown(t *testing.T) {
	for name, set := range map[string]struct {
		known map[string]bool
		read  []string
	}{
		"types": {knownTypes, []string{"user", "assistant", "system", "attachment", "progress", "summary", "custom-title", "ai-title",
			"last-prompt", "tag", "agent-name", "pr-link", "queue-operation", "file-history-snapshot", "file-history-delta",
			"permission-mode", "frame-link", "agent-setting"}},
		"system": {knownSystem, []string{"turn_duration", "stop_hook_summary", "compact_boundary", "microcompact_boundary",
			"local_command", "api_error", "away_summary", "scheduled_task_fire", "agents_killed"}},
		"attachments": {knownAttachments, []string{"queued_command", "model", "file", "hook_additional_context", "async_hook_response"}},
		"blocks": {knownBlocks, []string{"text", "thinking", "redacted_thinking", "image", "document", "tool_use",
			"server_tool_use", "mcp_tool_use", "tool_result", "advisor_tool_result", "web_search_tool_result"}},
		"members": {knownMembers, []string{"type", "subtype", "uuid", "parentUuid", "logicalParentUuid", "sessionId", "cwd", "gitBranch",
			"version", "entrypoint", "requestId", "promptId", "agentId", "permissionMode", "promptSource", "sourceToolAssistantUUID",
			"teamName", "agentName", "requestSessionId", "turnOrigin", "scheduledTaskId", "turnCompanion", "requestedModel", "advisorModel",
			"toolDenialKind", "origin", "message", "timestamp", "isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly",
			"isApiErrorMessage", "planContent", "toolUseResult", "content", "data", "durationMs", "compactMetadata",
			"microcompactMetadata", "attachment", "forkedFrom", "error"}},
	} {
		t.Logf("%s: %s", name, strings.Join(slices.Sorted(maps.Keys(set.known)), " "))
		for _, read := range set.read {
			kit.Check(t, set.known[read], "%s: %s is read, and not known", name, read)
		}
	}
}

// TestUnknown finds what is not known, and nothing in transcripts of every shape.
func TestUnknown(t *testing.T) {
	for line, want := range map[string]string{
		`{"type":"user","message":{"content":"hi"},"uuid":"1"}`:     "",
		`{"type":"frame-link","frameUrl":"x","whatever":1}`:         "",
		`{"type":"novel-link","x":1}`:                               "type novel-link",
		`{"x":1}`:                                                   "type ",
		`{"type":"system","subtype":"novel","novelMember":1}`:       "system novel, member novelMember",
		`{"type":"attachment","attachment":{"type":"novel","x":1}}`: "attachment novel",
		`{"type":"assistant","message":{"content":[{"type":"text"},{"type":"novel"},{"type":"novel"}]}}`: "block novel",
	} {
		kit.Equal(t, line, strings.Join(Unknown([]byte(line)), ", "), want)
	}
	files, err := filepath.Glob("session/testdata/derive/*.jsonl")
	kit.Require(t, err == nil && len(files) != 0, "no fixtures: %v", err)
	strange := map[string]bool{"strange.jsonl": true} // it has what nobody knows
	for _, file := range files {
		f := kit.Try(os.Open(file)).Must(t)
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if Scan(s.Bytes()).Shape != Object || strange[filepath.Base(file)] {
				continue
			}
			list := Unknown(s.Bytes())
			kit.Check(t, len(list) <= 0, "%s: %s", file, list)
		}
	}
}
