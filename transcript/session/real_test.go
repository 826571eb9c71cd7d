package session_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
	. "github.com/ccship/ccship/transcript/session"
)

// realFiles are the transcripts of a folder that is no part of the project: CCSHIP_TEST=corpus=FOLDER names it. Without one
// the test is skipped.
func realFiles(t testing.TB) (root string, files []string) {
	t.Helper()
	root = kit.Setting("corpus", "../../../shared/transcripts")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".jsonl") {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Skip("no real transcripts here; CCSHIP_TEST=corpus=FOLDER names some")
	}
	return root, files
}

// figures are what is compared of a transcript.
type figures struct {
	Prompts, Answers, Tools, Errors, Compactions int64
	Input, Output, CacheRead, CacheWrite         int64
	Checkpoints                                  int64 // that history makes
}

// TestRealTranscripts compares what is derived from real transcripts with a naive count that shares no code with it.
func TestRealTranscripts(t *testing.T) {
	root, files := realFiles(t)
	for _, file := range files {
		name, _ := filepath.Rel(root, file)
		lines := objects(t, file)
		var s Fold
		var marks CheckpointDetector
		var made int64
		for i, line := range lines {
			for _, e := range s.Add(int64(i), transcript.Parse(line)) {
				kit.Check(t, e.Kind != RewindEvent, "%s: line %d: a rewind, and there is none", name, i)
				if _, due := marks.Add(&e, &s, false); due {
					made++
				}
			}
		}
		sum := s.Summary()
		got := figures{
			sum.Prompts, sum.Answers, sum.Tools, sum.ToolErrors, sum.Compactions, sum.Usage.Input, sum.Usage.Output,
			sum.Usage.CacheRead, sum.Usage.CacheWrite5m + sum.Usage.CacheWrite1h, made,
		}
		diff := cmp.Diff(countNaively(lines), got)
		kit.Check(t, diff == "", "%s (-naive count +derived):\n%s", name, diff)
	}
}

// object is a decoded record, for counts that know nothing of how deriving works.
type object = map[string]any

func at(v any, path ...string) any {
	for _, name := range path {
		o, _ := v.(object)
		v = o[name]
	}
	return v
}

func number(v any, path ...string) int64 {
	n, _ := at(v, path...).(float64)
	return int64(n)
}

func word(v any, path ...string) string {
	s, _ := at(v, path...).(string)
	return s
}

// naively counts with everything in memory, decoded, as often over it as it takes.
func countNaively(lines [][]byte) (f figures) {
	var all []object
	seen := map[string]bool{}
	for _, line := range lines {
		var o object
		if json.Unmarshal(line, &o) != nil || seen[word(o, "uuid")] {
			continue
		}
		seen[word(o, "uuid")] = word(o, "uuid") != ""
		all = append(all, o)
	}
	calls, failed, answers := map[string]bool{}, int64(0), map[string]any{}
	for _, o := range all {
		content, _ := at(o, "message", "content").([]any)
		for _, b := range content {
			switch {
			case word(o, "type") == "assistant" && word(b, "type") == "tool_use":
				calls[word(b, "id")] = true
			case word(o, "type") == "user" && word(b, "type") == "tool_result" && at(b, "is_error") == true:
				failed++
			}
		}
		if word(o, "type") == "assistant" && word(o, "message", "model") != "<synthetic>" && at(o, "message", "usage") != nil {
			before := answers[word(o, "message", "id")]
			if before == nil || number(o, "message", "usage", "output_tokens") >= number(before, "output_tokens") {
				answers[word(o, "message", "id")] = at(o, "message", "usage")
			}
		}
		if word(o, "subtype") == "compact_boundary" {
			f.Compactions++
		}
	}
	f.Tools, f.Errors, f.Answers = int64(len(calls)), failed, int64(len(answers))
	for _, u := range answers {
		f.Input += number(u, "input_tokens")
		f.Output += number(u, "output_tokens")
		f.CacheRead += number(u, "cache_read_input_tokens")
		f.CacheWrite += number(u, "cache_creation_input_tokens")
	}
	f.Prompts = countPromptsNaively(all)
	for _, line := range lines { // grep -c '"subtype":"compact_boundary"'
		f.Checkpoints += int64(bytes.Count(line, []byte(`"subtype":"compact_boundary"`)))
	}
	return f
}

// naivePrompts counts what a human said: records of their own, and what only the queue tells.
func countPromptsNaively(all []object) (n int64) {
	said := map[string]bool{}
	for _, o := range all {
		if text, ok := naivePrompt(o); ok && !(word(o, "type") == "attachment" && said[text]) {
			said[text] = true
			n++
		}
	}
	var queue []string
	version := ""
	for _, o := range all {
		if v := word(o, "version"); v != "" {
			version = v
		}
		switch word(o, "operation") {
		case "enqueue":
			queue = append(queue, word(o, "content"))
		case "dequeue":
			queue = queue[min(1, len(queue)):]
		case "remove":
			if len(queue) > 0 && !strings.HasPrefix(queue[0], "<") && !said[queue[0]] && before97(version) {
				n++
			}
			queue = queue[min(1, len(queue)):]
		}
	}
	return n
}

// before97 is for the versions that there are: 2.0 and 2.1.
func before97(version string) bool {
	patch, err := strconv.Atoi(version[strings.LastIndexByte(version, '.')+1:])
	return err == nil && (patch < 97 || strings.HasPrefix(version, "2.0."))
}

func naivePrompt(o object) (string, bool) {
	if at(o, "isSidechain") == true || at(o, "isMeta") == true || at(o, "isCompactSummary") == true {
		return "", false
	}
	if word(o, "attachment", "type") == "queued_command" {
		return word(o, "attachment", "prompt"), word(o, "attachment", "commandMode") == "prompt"
	}
	if word(o, "type") != "user" {
		return "", false
	}
	text, _ := at(o, "message", "content").(string)
	blocks, _ := at(o, "message", "content").([]any)
	for _, b := range blocks {
		if t := word(b, "text"); word(b, "type") == "text" && !strings.HasPrefix(t, "<ide_") {
			text += t
		}
	}
	for _, mark := range []string{"<local-command-", "<command-name>", "<bash-", "<task-notification>", "[Request interrupted"} {
		if strings.HasPrefix(text, mark) {
			return "", false
		}
	}
	return text, text != ""
}
