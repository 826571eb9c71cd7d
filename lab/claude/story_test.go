//go:build unix

package claude_test

import (
	"bytes"
	"context"
	"encoding/json"
	"github.com/ccship/ccship/e2e/kit"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// story is a working day with Claude Code, step by step, with ccship running.
type story struct {
	*home
	w     *world
	first string // session of the first prompt
	big   string // session with large prompts
}

// step is one part of the story. It demands of Claude Code what it is there for: a step that does nothing proves
// nothing.
type step struct {
	name string
	tell func(*story)
}

// steps has what transcripts are made from.
func steps() []step {
	return []step{
		{"prompt", (*story).firstPrompt},
		{"another prompt", (*story).secondPrompt},
		{"prompt with tools", (*story).tools},
		{"resume", (*story).resume},
		{"continue", (*story).goOn},
		{"fork", (*story).fork},
		{"subagent", (*story).subagent},
		{"large tool output", (*story).largeOutput},
		{"compact", (*story).compact},
		{"two at once", (*story).twoAtOnce},
		{"large prompts", (*story).largePrompts},
		{"compact a large session", (*story).compactLarge},
		{"after the compaction", (*story).afterCompaction},
		{"ccship killed in between", (*story).killed},
	}
}

// scripts is what the model says in the story, where the prompt alone does not ask for it.
func scripts() []script {
	in := func(s string) json.RawMessage { return json.RawMessage(s) }
	return []script{{when: "Tidy up", says: []answer{
		{
			status: 529, thinking: "A file first. Dann sehen wir weiter: größer als nötig wird es nicht.", text: "I write it down.",
			tools: []call{
				{name: "Write", input: in(`{"file_path":"list.txt","content":"one\ntwo 🙂\n"}`)},
				{name: "Bash", input: in(`{"command":"printf 'a\\000b\\r\\n\\033[1mbold'; exit 3","description":"Odd bytes"}`)},
			},
		},
		{text: "And look.", tools: []call{{name: "Bash", input: in(`{"command":"ls -la","description":"List"}`)}}},
		{text: "Tidy."},
	}}}
}

// main is the transcript of a session.
func (s *story) main(session string) string {
	s.t.Helper()
	path, there := transcripts(s.t, s.projects())[session]
	kit.Require(s.t, there, "session %s has no transcript", session)
	return path
}

func (s *story) size(path string) int64 {
	s.t.Helper()
	info := kit.Try(os.Stat(path)).Must(s.t)
	return info.Size()
}

func (s *story) firstPrompt() {
	s.first = s.expect(s.prompt("hello, the first"), "You said: hello, the first").SessionID
}

func (s *story) secondPrompt() {
	o := s.expect(s.prompt("zweite Größe 🙂 \u2028 <&> \\ud83d \"\t\" { }\nand a line"), "and a line")
	kit.Require(s.t, o.SessionID != s.first, "a new prompt has an old session")
}

func (s *story) tools() {
	s.expect(s.prompt("Tidy up, please"), "Tidy.")
}

func (s *story) resume() {
	before := s.size(s.main(s.first))
	s.expect(s.prompt("after a resume", "--resume", s.first), "after a resume")
	kit.Require(s.t, s.size(s.main(s.first)) != before, "the resumed session did not grow")
}

func (s *story) goOn() { s.expect(s.prompt("and on", "--continue"), "and on") }

func (s *story) fork() {
	o := s.expect(s.prompt("a way of its own", "--resume", s.first, "--fork-session"), "a way of its own")
	kit.Require(s.t, o.SessionID != s.first, "the fork has its parent's session")
	kit.Require(s.t, bytes.Contains(read(s.t, s.main(o.SessionID)), []byte("hello, the first")),
		"the fork has no copy of its parent's history")
}

func (s *story) subagent() {
	before := transcripts(s.t, s.projects())
	s.expect(s.prompt(`@Task {"description":"A look","subagent_type":"general-purpose","prompt":"@Bash {\"command\":\"echo from-the-agent\",\"description\":\"Say it\"}"}`), "")
	for name, path := range transcripts(s.t, s.projects()) {
		if _, old := before[name]; !old && strings.Contains(name, "/agent-") && bytes.Contains(read(s.t, path), []byte("from-the-agent")) {
			return
		}
	}
	s.t.Fatal("no agent's transcript with what it did")
}

// largeOutput has Bash print 240 KB. Versions differ in how much of it they keep, and where.
func (s *story) largeOutput() {
	o := s.expect(s.prompt(`@Bash {"command":"seq -f 'line %06.0f of a large output' 8000","description":"Much"}`), "Done.")
	longest := 0
	for line := range bytes.Lines(read(s.t, s.main(o.SessionID))) {
		longest = max(longest, len(line))
	}
	spilled := kit.Try(filepath.Glob(filepath.Join(s.projects(), "*", o.SessionID, "tool-results", "*.txt"))).Must(s.t)
	kit.Require(s.t, longest >= 30_000 && (len(spilled) != 1 || s.size(spilled[0]) >= 200_000),
		"the longest line has %d bytes, spilled is %q", longest, spilled)
}

func (s *story) compact() {
	path := s.main(s.first)
	before := s.size(path)
	s.prompt("/compact", "--resume", s.first)
	if data := read(s.t, path); s.size(path) <= before || !bytes.Contains(data, []byte("compact_boundary")) {
		s.t.Fatal("the session was not compacted")
	}
}

// twoAtOnce talks in two sessions of one project, turn by turn.
func (s *story) twoAtOnce() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	one, two := s.converse(ctx), s.converse(ctx)
	for _, text := range []string{"alpha", "beta", `@Bash {"command":"echo gamma","description":"Say it"}`} {
		a, b := one.prompt(text), two.prompt(text)
		kit.Require(s.t, !a.IsError && !b.IsError && a.SessionID != b.SessionID, "side by side: %+v and %+v", a, b)
		s.w.verify() // while both are there
	}
	one.end()
	two.end()
}

// largePrompts makes a session of some megabytes, with single lines of 1 MB and more.
func (s *story) largePrompts() {
	large := strings.Repeat("many words ", 1_000_000/11)
	s.big = s.expect(s.prompt(large+"one"), "words one").SessionID
	for _, last := range []string{"two", "three"} {
		s.expect(s.prompt(large+last, "--resume", s.big), "words "+last)
	}
	size := s.size(s.main(s.big))
	kit.Require(s.t, size >= 3_000_000, "the large session has %d bytes", size)
}

// compactLarge makes newer versions replace the transcript by a shorter one: a new file under the old name.
func (s *story) compactLarge() {
	path := s.main(s.big)
	before, old := s.size(path), inode(s.t, path)
	s.prompt("/compact", "--resume", s.big)
	replaced := inode(s.t, path) != old
	s.t.Logf("the transcript had %d bytes, and has %d; replaced: %v", before, s.size(path), replaced)
	kit.Equal(s.t, "the transcript was replaced", replaced, s.replaces())
	if !replaced {
		return
	}
	s.w.verify()
	kit.Equal(s.t, "generations of the replaced transcript on the server", s.w.generations(s.big), 2)
}

// replaces says whether this version collects the garbage of a large transcript.
func (s *story) replaces() bool { return !slices.Contains(versions[1:], s.version) }

func inode(t testing.TB, path string) uint64 {
	t.Helper()
	return inventory(t, path)[path].Inode
}

func (s *story) afterCompaction() {
	s.expect(s.prompt("after the compaction", "--resume", s.big), "after the compaction")
}

// killed takes ccship away in the middle of a conversation, as a power switch would, and brings it back.
func (s *story) killed() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d := s.converse(ctx)
	d.prompt("with ccship")
	s.w.daemon.Kill()
	d.prompt("without ccship")
	d.prompt(`@Bash {"command":"seq 9000","description":"Count"}`)
	s.w.start()
	s.expect(d.prompt("with ccship again"), "again")
	d.end()
}
