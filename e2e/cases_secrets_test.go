//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript/planted"
)

// secrets are planted texts, each with the part of its secret that no escape can change.
type secrets struct {
	t       testing.TB
	r       *rand.Rand
	needles map[string]string // to the kind and the place
}

var letters = regexp.MustCompile(`[A-Za-z0-9]+`)

// plant makes a text of a kind for a place.
func (s *secrets) plant(kind, place string) string {
	text, secret := planted.Plant(s.r, planted.Kinds()[kind])
	needle := slices.MaxFunc(letters.FindAllString(secret, -1), func(a, b string) int { return len(a) - len(b) })
	s.needles[needle] = kind + " in " + place
	return text
}

// in names the secrets that a text holds in clear.
func (s *secrets) in(text []byte) (found []string) {
	for needle, where := range s.needles {
		if bytes.Contains(text, []byte(needle)) {
			found = append(found, where)
		}
	}
	return found
}

// none demands that a text holds no secret.
func (s *secrets) none(what string, text []byte) {
	s.t.Helper()
	found := s.in(text)
	kit.Check(s.t, len(found) == 0, "%s holds %d secrets: %q", what, len(found), found)
}

func quoted(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// secretLines are lines of a conversation with a text in every place where Claude Code puts one.
var secretLines = map[string]func(text string) string{
	"a prompt": func(s string) string {
		return `{"type":"user","message":{"role":"user","content":` + quoted("see\n"+s) + `}`
	},
	"an answer": func(s string) string {
		return `{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":` + quoted("한글\t"+s+"\nend") + `}]}`
	},
	"a tool's input": func(s string) string {
		return `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":` +
			quoted("cat <<E\n"+s+"\nE") + `}}]}`
	},
	"a tool's result": func(s string) string {
		return `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":` +
			quoted(quoted(map[string]string{"out": quoted([]string{s})})) + `}]}`
	},
	"a snapshot": func(s string) string {
		return `{"type":"file-history-snapshot","snapshot":{"x":{"content":` + quoted("1\n"+s) + `}}`
	},
	"a queued prompt": func(s string) string {
		return `{"type":"queue-operation","operation":"enqueue","content":` + quoted(s)
	},
	"a title": func(s string) string { return `{"type":"custom-title","customTitle":` + quoted("about "+s) },
	"a patch": func(s string) string {
		return `{"type":"user","toolUseResult":{"structuredPatch":[{"oldStart":1,"lines":` +
			quoted(strings.Split("+"+strings.ReplaceAll(s, "\n", "\n+"), "\n")) + `}]}`
	},
	"coloured output": func(s string) string {
		return `{"type":"user","toolUseResult":{"stdout":` + quoted("see \x1b[01;31m\x1b[K"+s+"\x1b[m\x1b[K end") + `}`
	},
}

// secretSession writes a session with secrets of every kind in its transcript, and some in files next to it, documents
// and the prompt history. It returns the session and its transcript.
func secretSession(w *world, s *secrets) (c *conversation, path string, documents []string) {
	c = newConversation(77, w.cwd())
	path = w.path("-work-shop", c.session+".jsonl")
	w.add(path, c.even(3, 500))
	kinds, n := slices.Sorted(maps.Keys(planted.Kinds())), 0
	for _, place := range slices.Sorted(maps.Keys(secretLines)) {
		for _, kind := range kinds {
			n++
			w.add(path, fmt.Appendf(nil, "%s,\"uuid\":\"%08d\",\"sessionId\":%q,\"cwd\":%q}\n",
				secretLines[place](s.plant(kind, place)), n, c.session, w.cwd()))
		}
	}
	for i, kind := range kinds[:12] {
		beside := filepath.Join(w.projects(), "-work-shop", c.session, "tool-results", fmt.Sprintf("t%d.txt", i))
		must(w.t, os.MkdirAll(filepath.Dir(beside), 0o700))
		must(w.t, os.WriteFile(beside, []byte("out:\n"+s.plant(kind, "an attachment")+"\n"), 0o600))
		document := fmt.Sprintf("doc%d.md", i)
		must(w.t, os.WriteFile(filepath.Join(w.cwd(), document), []byte("# x\n\n"+s.plant(kind, "a document")+"\n"), 0o600))
		documents = append(documents, document)
		w.add(filepath.Join(w.dir, ".claude", "history.jsonl"), fmt.Appendf(nil, "{\"display\":%s,\"pastedContents\":{\"1\":{\"id\":1,\"content\":%s}},\"project\":%q}\n",
			quoted(s.plant(kind, "the history")), quoted("pasted:\n"+s.plant(kind, "what was pasted")), w.cwd()))
	}
	return c, path, documents
}

// TestSecretsStayHere plants more than 300 secrets of every kind wherever Claude Code and a person can put them: the
// server gets tokens of the same length, through restarts, rewinds, a lost state, and from a second machine with the
// key.
func TestSecretsStayHere(t *testing.T) {
	w := aloneWorld(t)
	w.env = append(w.env, "CCSHIP_REDACT=on", "CCSHIP_LOG_LEVEL=debug")
	s := &secrets{t, rand.New(rand.NewPCG(7, 7)), map[string]string{}}
	c, path, documents := secretSession(w, s)
	w.startAndSync()
	for _, name := range documents {
		w.look("", 0, "link", "add", filepath.Join(w.cwd(), name), "--session", c.session)
	}
	w.syncVerified()
	raw := w.exact.raw(c.session, "")
	server := [][]byte{raw}
	for _, content := range w.besides(c.session) {
		server = append(server, content)
	}
	for _, name := range documents {
		code, content := w.exact.get("/api/sessions/" + c.session + "/documents/" + url.PathEscape(name))
		kit.Require(t, code == http.StatusOK, "%s: %d", name, code)
		server = append(server, content)
	}
	server = append(server, w.history(t))
	kit.Check(t, len(s.needles) >= 300, "only %d secrets are planted", len(s.needles))
	found := s.in(bytes.Join(server, nil))
	kit.Check(t, len(found)*50 <= len(s.needles), "%d of %d secrets are on the server: %q", len(found), len(s.needles), found)
	w.sameShape(raw, w.read(path))
	s.quiet(w, c.session)

	before := w.sent()
	w.d.MustStop(t)
	w.startAndSync()
	again := w.sent()
	kit.Check(t, again <= before/4, "%d bytes are sent again after a restart", again)
	replaced := filepath.Join(w.dir, "copy")
	must(t, os.WriteFile(replaced, w.read(path), 0o600))
	must(t, os.Rename(replaced, path)) // another file in its place is read from its beginning
	w.sync()
	w.look("", 0, "verify", "--repair", c.session, "--from-start")
	w.sync()
	w.holds(c.session, raw)
	w.keepLines(path, 200)
	w.sync()
	w.addAndSync(path, c.even(2, 500))
	w.verified()
	rewound := w.exact.raw(c.session, "")
	first := firstLines(raw, 200)
	kit.Check(t, bytes.HasPrefix(rewound, first), "after a rewind: %s", firstDifference(rewound, first))
	w.d.MustStop(t)
	must(t, os.RemoveAll(w.state()))
	w.startAndSync()
	w.verified()
	w.holds(c.session, rewound)
	s.quiet(w, c.session)
	secondMachine(t, w, c.session, path, rewound)
}

// sameShape demands lines of the same lengths, valid where they were.
func (w *world) sameShape(got, disk []byte) {
	w.t.Helper()
	a, b := bytes.Split(got, []byte("\n")), bytes.Split(disk, []byte("\n"))
	kit.Require(w.t, len(a) == len(b), "%d lines, want %d", len(a), len(b))
	for i := range a {
		kit.Check(w.t, len(a[i]) == len(b[i]) && json.Valid(a[i]) == json.Valid(b[i]),
			"line %d: %d bytes, want %d, valid %v", i, len(a[i]), len(b[i]), json.Valid(a[i]))
	}
}

// quiet demands that nothing that the daemon writes or says holds a secret.
func (s *secrets) quiet(w *world, session string) {
	w.t.Helper()
	s.none("the log", []byte(w.d.Log.String()))
	s.none("the metrics", []byte(w.socketGet("/metrics")))
	for _, args := range [][]string{
		{"status"}, {"status", "--json"}, {"doctor"}, {"list", "--json"}, {"verify", "--json"}, {"outbox", "list"},
		{"messages", session}, {"messages", session, "--json"},
	} {
		out := w.ccship(args...)
		s.none(strings.Join(args, " "), []byte(out.stdout+out.stderr))
	}
	must(w.t, filepath.WalkDir(w.state(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		s.none(path, text)
		return err
	}))
}

// history is the prompt history that the server has.
func (w *world) history(t *testing.T) []byte {
	t.Helper()
	_, list := w.exact.get("/api/sessions?limit=100")
	name := regexp.MustCompile(`"(history-[^"]+)"`).FindSubmatch(list)
	kit.Require(t, name != nil, "no history in %s", list)
	return w.exact.raw(string(name[1]), "")
}

// secondMachine ships the same transcript from a home of its own with the same key: the tokens are the same.
func secondMachine(t *testing.T, first *world, session, path string, want []byte) {
	t.Helper()
	key := first.ccship("redact", "key").stdout
	w := exactWorld(t)
	w.env = append(w.env, "CCSHIP_REDACT=on")
	file := filepath.Join(w.dir, "exported")
	must(t, os.WriteFile(file, []byte(key), 0o600))
	w.look("", 0, "redact", "key", file)
	w.add(w.path("-work-shop", session+".jsonl"), first.read(path))
	w.startAndSync()
	w.holds(session, want)
}
