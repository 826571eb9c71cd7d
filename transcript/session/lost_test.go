package session_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
	. "github.com/ccship/ccship/transcript/session"
)

// corpus is the shapes, the transcripts next to the project, if they are there, and those of the folder that
// CCSHIP_TEST=corpus=FOLDER names.
func corpus(t *testing.T) (files []string) {
	t.Helper()
	dir := t.TempDir()
	for i, x := range shapes {
		path := filepath.Join(dir, fmt.Sprintf("shape %d.jsonl", i+1))
		kit.Must(t, os.WriteFile(path, []byte(strings.Join(shapeLines(x.records), "\n")+"\n"), 0o600))
		files = append(files, path)
	}
	for _, root := range []string{"../../../shared/transcripts", kit.Setting("corpus", "")} {
		if root == "" {
			continue
		}
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if path == "../../../shared/transcripts" && err != nil {
				return fs.SkipAll // they are not there
			}
			if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, ".jsonl") {
				files = append(files, path)
			}
			return nil // a folder that cannot be read has no transcripts
		})
		kit.Must(t, err)
	}
	return files
}

// naiveLine is a line of a transcript as a count sees it that knows nothing of how deriving works.
type naiveLine struct {
	at           int64
	uuid, parent string
	message      bool // a speaker said it
	prompt, plan bool
}

// naiveLines are the chain records of a transcript, each uuid once.
func naiveLines(lines [][]byte) (all []naiveLine) {
	seen, agent, first := map[string]bool{}, false, true
	for i, line := range lines {
		var o object
		if json.Unmarshal(line, &o) != nil || word(o, "uuid") == "" || seen[word(o, "uuid")] {
			continue
		}
		seen[word(o, "uuid")] = true
		side := at(o, "isSidechain") == true
		if first {
			first, agent = false, side && word(o, "agentId") != ""
		}
		if side != agent {
			continue
		}
		n := naiveLine{at: int64(i), uuid: word(o, "uuid"), parent: word(o, "parentUuid"), plan: word(o, "planContent") != ""}
		_, n.prompt = naivePrompt(o)
		n.prompt = n.prompt && at(o, "isVisibleInTranscriptOnly") != true
		n.message = n.prompt || saysSomething(o)
		all = append(all, n)
	}
	return all
}

// saysSomething reports whether a record is a model's, with text.
func saysSomething(o object) bool {
	if word(o, "type") != "assistant" || word(o, "message", "model") == "<synthetic>" || at(o, "isApiErrorMessage") == true {
		return false
	}
	content, _ := at(o, "message", "content").([]any)
	for _, b := range content {
		if word(b, "type") == "text" && strings.TrimSpace(word(b, "text")) != "" {
			return true
		}
	}
	return false
}

// explained reports whether a later prompt goes on from before a message, so that the message is not above it.
func explained(all []naiveLine, lost naiveLine) bool {
	parents := map[string]string{}
	for _, n := range all {
		parents[n.uuid] = n.parent
	}
	above := map[string]bool{}
	for id := lost.parent; !above[id]; id = parents[id] {
		above[id] = true // "" too: the beginning
	}
	for _, n := range all {
		if n.at <= lost.at || !n.prompt || n.plan {
			continue
		}
		onTop, whole, shared, seen := false, true, false, map[string]bool{}
		for id := n.uuid; id != "" && !seen[id]; id = parents[id] {
			seen[id] = true
			onTop, shared = onTop || id == lost.uuid, shared || above[id]
			_, known := parents[id]
			whole = whole && known
		}
		if !onTop && (shared || whole && above[""]) {
			return true
		}
	}
	return false
}

// TestNoMessageIsLost: whatever a transcript says is an event, and is part of the conversation unless a later prompt
// goes on from before it.
func TestNoMessageIsLost(t *testing.T) {
	said, left := 0, 0
	for _, file := range corpus(t) {
		lines := objects(t, file)
		var s Fold
		var tree Tree
		told := map[int64]bool{}
		for i, line := range lines {
			r := transcript.Parse(line)
			tree.Add(int64(i), &r)
			for _, e := range s.Add(int64(i), r) {
				told[e.Line] = told[e.Line] || e.Kind == PromptEvent || e.Kind == AnswerEvent || e.Kind == TaskEvent
			}
		}
		all, queue := naiveLines(lines), 0
		for _, n := range all {
			if !n.message {
				continue
			}
			said++
			if !told[n.at] && n.prompt { // of a queued prompt's records, one is shown
				queue++
			} else if !told[n.at] {
				t.Errorf("%s: line %d says something and is no message", file, n.at+1)
			}
			if tree.Abandoned(n.at) != 0 {
				if left++; !explained(all, n) {
					t.Errorf("%s: line %d is lost, and no later prompt explains it", file, n.at+1)
				}
			}
		}
		text := joined(lines)
		kit.Check(t, queue <= strings.Count(text, `"enqueue"`)+strings.Count(text, `"queued_command"`),
			"%s: %d prompts are not told", file, queue)
	}
	t.Logf("%d messages, of which rewinds removed %d", said, left)
}

func joined(lines [][]byte) string {
	var b strings.Builder
	for _, line := range lines {
		b.Write(line)
	}
	return b.String()
}
