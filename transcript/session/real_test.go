package session_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
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

func (f figures) row() string {
	return fmt.Sprintf("%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d", f.Prompts, f.Answers, f.Tools, f.Errors, f.Compactions,
		f.Input, f.Output, f.CacheRead, f.CacheWrite, f.Checkpoints)
}

// TestRealTranscripts compares what is derived from real transcripts with testdata/real.tsv, and with two
// counts that share no code with it: a naive one, and one by jq if it is installed.
func TestRealTranscripts(t *testing.T) {
	root, files := realFiles(t)
	var table strings.Builder
	for _, file := range files {
		name, _ := filepath.Rel(root, file)
		lines := objects(t, file)
		var s Fold
		var marks CheckpointDetector
		var made int64
		for i, line := range lines {
			for _, e := range s.Add(int64(i), transcript.Parse(line)) {
				if e.Kind == RewindEvent {
					t.Errorf("%s: line %d: a rewind, and there is none", name, i)
				}
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
		if diff := cmp.Diff(countNaively(lines), got); diff != "" {
			t.Errorf("%s (-naive count +derived):\n%s", name, diff)
		}
		if want, ok := withJQ(t, lines); ok {
			if diff := cmp.Diff(want, figures{Answers: got.Answers, Tools: got.Tools, Output: got.Output, Compactions: got.Compactions}); diff != "" {
				t.Errorf("%s (-jq +derived):\n%s", name, diff)
			}
		}
		fmt.Fprintf(&table, "%s\t%s\n", filepath.ToSlash(name), got.row())
	}
	compareTable(t, table.String())
}

// compareTable compares the rows with those of testdata/real.tsv, whose first line names the columns.
func compareTable(t *testing.T, got string) {
	t.Helper()
	if kit.Setting("corpus", "") != "" {
		return // others than those in the table
	}
	const file = "testdata/real.tsv"
	table, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	header, want, _ := strings.Cut(string(table), "\n")
	if os.Getenv("CCSHIP_UPDATE_GOLDEN") == "1" {
		if err := os.WriteFile(file, []byte(header+"\n"+got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// withJQ counts answers, calls, output tokens and compactions.
func withJQ(t testing.TB, lines [][]byte) (figures, bool) {
	t.Helper()
	jq, err := exec.LookPath("jq")
	if err != nil {
		return figures{}, false
	}
	const program = `
[.[] | select(.type == "assistant" and .isApiErrorMessage != true and .message.model != "<synthetic>" and .message.usage != null)] as $a |
[($a | map(.message.id) | unique | length),
 ([.[] | select(.type == "assistant") | .message.content | arrays | .[] | select(.type == "tool_use") | .id] | unique | length),
 ([$a | group_by(.message.id)[] | map(.message.usage.output_tokens) | max] | add // 0),
 ([.[] | select(.subtype == "compact_boundary") | .uuid] | unique | length)]`
	cmd := exec.Command(jq, "-s", program)
	cmd.Stdin = bytes.NewReader(bytes.Join(lines, []byte("\n")))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("jq: %v", err)
	}
	var n [4]int64
	if err := json.Unmarshal(out, &n); err != nil {
		t.Fatal(err)
	}
	return figures{Answers: n[0], Tools: n[1], Output: n[2], Compactions: n[3]}, true
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
