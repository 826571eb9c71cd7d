//go:build linux

package beside

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	invented "github.com/ccship/ccship/e2e/bench/corpus"
)

// phraseCount is how many searches there are.
const phraseCount = 20

// corpus is the conversations that both programs get, and what is true of them.
type corpus struct {
	files   map[string][]byte // by path below projects
	bytes   int64
	texts   map[string][]string // what each conversation says, in lower case; its agents' words are its own
	phrases []string
	truth   []map[string]bool   // of each phrase, the conversations that hold it
	copies  map[string][]string // what texts leaves out: files as they were before an edit, which records repeat
	wider   []map[string]bool   // truth, with copies
	mains   map[string]string   // the conversation of a transcript, by the transcript's name
}

func newCorpus(t *testing.T) *corpus {
	t.Helper()
	c := &corpus{files: map[string][]byte{}, texts: map[string][]string{}, copies: map[string][]string{}, mains: map[string]string{}}
	if dir := os.Getenv("CCSHIP_CORPUS"); dir != "" {
		c.read(t, dir)
	} else {
		c.invent(t)
	}
	for _, path := range slices.Sorted(maps.Keys(c.files)) { // the phrases are the same ones every time
		text := c.files[path]
		c.bytes += int64(len(text))
		name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		main := name
		if parts := strings.Split(path, string(filepath.Separator)); len(parts) > 2 {
			main = parts[1]
		}
		c.mains[name] = main
		for line := range bytes.Lines(text) {
			texts, copies := said(line)
			c.texts[main], c.copies[main] = append(c.texts[main], texts...), append(c.copies[main], copies...)
		}
	}
	c.choose()
	return c
}

// read takes the transcripts below a folder of projects.
func (c *corpus) read(t *testing.T, dir string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".jsonl" {
			return err
		}
		below, err := filepath.Rel(dir, path)
		if err == nil {
			c.files[below], err = os.ReadFile(path)
		}
		return err
	}))
}

// invent makes CCSHIP_BESIDE_MB of conversations of one person, 60 where it says nothing.
func (c *corpus) invent(t *testing.T) {
	t.Helper()
	mb, err := strconv.ParseInt(os.Getenv("CCSHIP_BESIDE_MB"), 10, 64)
	if err != nil {
		mb = 60
	}
	source, err := invented.Standard()
	must(t, err)
	for _, s := range (invented.Plan{Seed: 1, Bytes: mb * 1e6, Owners: 1}).Sessions() {
		chunks := s.Chunks(source)
		c.files[s.Path] = []byte(strings.Join(chunks[len(chunks)-1].Lines, "\n") + "\n")
	}
}

// names are members of a record that nobody looks for: ids, places, kinds, and what machinery says of itself.
var names = []string{"uuid", "parentUuid", "sessionId", "session_id", "cwd", "gitBranch", "version", "type", "requestId", "timestamp", "userType", "slug", "id", "model", "role",
	"signature", "tool_use_id", "stop_reason", "service_tier", "data", "sourceToolAssistantUUID", "messageId", "leafUuid", "promptId", "hookInfos", "hookErrors"}

// machinery are kinds of attachments that tell a model of its tools: Claude Code writes them, nobody looks for them.
var machinery = []string{"skill_listing", "deferred_tools_delta", "mcp_instructions_delta", "agent_listing_delta"}

// original is a member of a record that has a whole file as it was before an edit.
const original = "originalFile"

// said is every text in a record, in lower case, and copies of files apart.
func said(line []byte) (texts, copies []string) {
	var record any
	if json.Unmarshal(line, &record) != nil {
		return nil, nil
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			texts = append(texts, strings.ToLower(v))
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			if kind, _ := v["type"].(string); slices.Contains(machinery, kind) || v["hookEvent"] != nil {
				return
			}
			for _, name := range slices.Sorted(maps.Keys(v)) {
				switch text, whole := v[name].(string); {
				case name == original && whole:
					copies = append(copies, strings.ToLower(text))
				case !slices.Contains(names, name):
					walk(v[name])
				}
			}
		}
	}
	walk(record)
	return texts, copies
}

// pair is two words of which a person would remember a text.
var pair = regexp.MustCompile(`\b\p{L}{4,} \p{L}{4,}\b`)

// choose takes phrases from texts all over the conversations, the same ones every time.
func (c *corpus) choose() {
	rng := rand.New(rand.NewPCG(20, 26))
	ids := c.sessions()
	for tries := 0; len(c.phrases) < phraseCount && tries < 100_000; tries++ {
		texts := c.texts[ids[rng.IntN(len(ids))]]
		if len(texts) == 0 {
			continue
		}
		found := pair.FindAllString(texts[rng.IntN(len(texts))], -1)
		if len(found) == 0 {
			continue
		}
		phrase := found[rng.IntN(len(found))]
		if slices.Contains(c.phrases, phrase) {
			continue
		}
		holders := holding(phrase, c.texts)
		if len(holders) > 0 && len(holders) <= 40 { // nobody reads more
			wider := holding(phrase, c.copies)
			maps.Copy(wider, holders)
			c.phrases, c.truth, c.wider = append(c.phrases, phrase), append(c.truth, holders), append(c.wider, wider)
		}
	}
}

// holding are the conversations one of whose texts has a phrase in it.
func holding(phrase string, all map[string][]string) map[string]bool {
	holders := map[string]bool{}
	for id, texts := range all {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, phrase) }) {
			holders[id] = true
		}
	}
	return holders
}

// sessions are the ids of all conversations, sorted.
func (c *corpus) sessions() (ids []string) {
	for id := range c.texts {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// held is how many conversations the phrases are in, added up.
func held(truth []map[string]bool) (n int) {
	for _, holders := range truth {
		n += len(holders)
	}
	return n
}

// main is the conversation that a transcript belongs to.
func (c *corpus) main(id string) string {
	if _, agent, found := strings.Cut(id, "/"); found {
		id = agent
	}
	for _, name := range []string{id, "agent-" + id} {
		if main, ok := c.mains[name]; ok {
			return main
		}
	}
	return id
}

func (c *corpus) copyTo(t *testing.T, dir string) {
	t.Helper()
	for path, text := range c.files {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, path), text, 0o600))
	}
}
