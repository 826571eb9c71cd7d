//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// checkpoint is what the tests read of one, from the daemon and from the server.
type checkpoint struct {
	ID          string   `json:"id"`
	SessionID   string   `json:"session_id"`
	TokensUsed  int      `json:"tokens_used"`
	TokenBudget int      `json:"token_budget"`
	TriggerType string   `json:"trigger_type"`
	ContextHash string   `json:"context_hash"`
	Summary     string   `json:"summary"`
	ActiveFiles []string `json:"active_files"`
	CreatedAt   string   `json:"created_at"`
}

type checkpointList struct {
	SchemaVersion int          `json:"schema_version"`
	Checkpoints   []checkpoint `json:"checkpoints"`
}

// checkpoints are a session's, newest first, as the daemon has them.
func (w *world) checkpoints(session string) []checkpoint {
	w.t.Helper()
	out := w.ccship("checkpoint", "list", "--session", session, "--json")
	var list checkpointList
	if err := json.Unmarshal([]byte(out.stdout), &list); out.code != 0 || err != nil || list.SchemaVersion != 1 {
		w.t.Fatalf("checkpoint list: exit %d, %v\n%s%s", out.code, err, out.stdout, out.stderr)
	}
	return list.Checkpoints
}

// arrived are those that the server has.
func (w *world) arrived(session string) []checkpoint {
	w.t.Helper()
	code, body := w.exact.get("/api/checkpoints?session=" + url.QueryEscape(session))
	var list checkpointList
	err := json.Unmarshal(body, &list)
	kit.Require(w.t, code == 200 && err == nil, "GET /api/checkpoints: %d, %v\n%s", code, err, body)
	return list.Checkpoints
}

func triggers(list []checkpoint) string {
	names := make([]string, 0, len(list))
	for _, c := range list {
		names = append(names, c.TriggerType)
	}
	return strings.Join(names, " ")
}

// message is what the tests read of `ccship messages --json`.
type message struct {
	Role, Type, Content, ToolName, Output string
	ToolInput                             json.RawMessage
	Success                               *bool
	Error                                 *string
	Timestamp                             int64
	InputTokens, OutputTokens             int64
}

func (w *world) messages(session string, args ...string) (total int, list []message) {
	w.t.Helper()
	out := w.ccship(append([]string{"messages", session, "--json"}, args...)...)
	var answer struct {
		SchemaVersion int `json:"schema_version"`
		Total         int
		Messages      []message
	}
	if err := json.Unmarshal([]byte(out.stdout), &answer); out.code != 0 || err != nil || answer.SchemaVersion != 1 {
		w.t.Fatalf("messages: exit %d, %v\n%s%s", out.code, err, out.stdout, out.stderr)
	}
	return answer.Total, answer.Messages
}

// texts are the messages in one word each: what was said, or which tool was used.
func texts(list []message) string {
	var words []string
	for _, m := range list {
		switch {
		case m.Type == "result":
		case m.ToolName != "":
			words = append(words, m.Type+":"+m.ToolName)
		default:
			words = append(words, m.Content)
		}
	}
	return strings.Join(words, " | ")
}

const (
	sessionA = "5e55a001-0000-4000-8000-000000000001"
	sessionB = "5e55a002-0000-4000-8000-000000000002"
)

// growing fills a conversation from 60 % of what it can hold (167 000 tokens) over 82 and 91 to its compaction.
func growing(c *talk) [][]byte {
	return [][]byte{
		c.turn(100_200, "Begin the parser", "It is begun."),
		c.turn(136_940, "Go on", "It goes on."),
		c.turn(151_970, "And now the tests", "They pass."),
		c.compact(167_100, 9_000),
		c.turn(20_000, "What next", "The documents."),
	}
}

// TestCheckpointsOfALiveSession wants exactly the marks that were passed, here and on the server, over a kill.
func TestCheckpointsOfALiveSession(t *testing.T) {
	w, c, path := aloneTalk(t, sessionA)
	want := []string{"", "auto_80", "auto_90 auto_80", "compact auto_90 auto_80", "compact auto_90 auto_80"}
	for i, lines := range growing(c) {
		w.addAndSync(path, lines)
		got := triggers(w.checkpoints(sessionA))
		kit.Require(t, got == want[i], "after step %d: %q, want %q", i, got, want[i])
		if i%2 == 1 {
			w.d.Kill()
			w.start()
		}
	}
	here := w.checkpoints(sessionA)
	for _, p := range here {
		kit.Check(t, strings.HasPrefix(p.ID, "cp-") && p.SessionID == sessionA &&
			(p.TokenBudget == 167_000 || p.TriggerType == "compact") && p.Summary != "" && p.ContextHash != "",
			"%+v", p)
	}
	kit.Check(t, here[2].TokensUsed == 136_940 && here[1].TokensUsed == 151_970 && here[0].TokensUsed == 167_100,
		"tokens: %+v", here)
	w.sync()
	there := w.arrived(sessionA)
	kit.Check(t, triggers(there) == triggers(here), "the server has %q, want %q", triggers(there), triggers(here))
	for i := range min(len(here), len(there)) {
		kit.Check(t, here[i].ID == there[i].ID && here[i].Summary == there[i].Summary && here[i].ContextHash == there[i].ContextHash,
			"the server has %+v, want %+v", there[i], here[i])
	}
	w.proven(sessionA, path)
}

// TestHistoryFiresNothing: of an import only compactions are marked, and what it passes from then on.
func TestHistoryFiresNothing(t *testing.T) {
	w := aloneWorld(t)
	a, b := newTalk(sessionA, w.cwd()), newTalk(sessionB, w.cwd())
	w.add(w.path("-work-shop", sessionA+".jsonl"), bytes.Join(growing(a), nil))
	grown := w.path("-work-shop", sessionB+".jsonl")
	w.add(grown, bytes.Join(growing(b)[:2], nil)) // at 82 %
	w.startAndSync()
	kit.Equal(t, "of history", triggers(w.checkpoints(sessionA)), "compact")
	kit.Equal(t, "of history the server has", triggers(w.arrived(sessionA)), "compact")
	w.addAndSync(grown, b.turn(138_000, "Still there", "Yes."))
	kit.Equal(t, "80 % was passed before the daemon came", triggers(w.checkpoints(sessionB)), "")
	w.addAndSync(grown, b.turn(152_000, "More", "More."))
	kit.Equal(t, "passed while watching", triggers(w.checkpoints(sessionB)), "auto_90")
}

// TestHistoryOfARewoundSession wants the messages of the conversation as it stands: after a step back in the
// conversation, after the file itself was cut, after a restart; a fork and a resume have their own.
func TestHistoryOfARewoundSession(t *testing.T) {
	w, c, path := aloneTalk(t, sessionA)
	w.add(path, c.turn(10_000, "one", "first"))
	middle := c.leaf
	w.add(path, c.prompt("two"))
	w.addAndSync(path, c.calls(11_000, "toolu_1", "Read", map[string]any{"file_path": "/x/y.go", "limit": 10}))
	w.d.Kill() // in the middle of a turn
	w.start()
	if _, list := w.messages(sessionA); texts(list) != "one | first | two | tool_start:Read" {
		t.Errorf("in the middle: %q", texts(list))
	}
	w.add(path, c.returns("toolu_1", strings.Repeat("line of the file\n", 100), false))
	w.addAndSync(path, c.says(12_000, "second"))
	total, list := w.messages(sessionA)
	kit.Check(t, texts(list) == "one | first | two | tool_complete:Read | second",
		"after the turn: %q of %d", texts(list), total)
	tool := list[slices.IndexFunc(list, func(m message) bool { return m.ToolName != "" })]
	kit.Check(t, string(tool.ToolInput) == `{"file_path":"/x/y.go"}` && strings.HasSuffix(tool.Output, "(1700 chars total)") && tool.Success != nil && *tool.Success,
		"the tool call is %+v", tool)
	before := w.read(path)
	// The user goes back behind "one", and says something else.
	c.leaf = middle
	w.addAndSync(path, c.turn(10_500, "other", "way"))
	_, list = w.messages(sessionA)
	kit.Check(t, texts(list) == "one | first | other | way", "after a rewind: %q", texts(list))
	// The file is cut, as after a withdrawn message.
	must(t, os.WriteFile(path, firstLines(before, 2), 0o600))
	w.sync()
	_, list = w.messages(sessionA)
	kit.Check(t, texts(list) == "one | first", "after the file was cut: %q", texts(list))
	w.addAndSync(path, bytes.ReplaceAll(c.turn(10_700, "third", "try"), []byte(`"parentUuid":null`), []byte(`"parentUuid":"`+middle+`"`)))
	n, list := w.messages(sessionA, "--limit", "2")
	kit.Check(t, len(list) <= 2 && n >= 4 && strings.HasSuffix(texts(list), "try"), "the newest two: %q", texts(list))
	w.forked(path)
	w.verified()
}

// forked copies the session under another name, as --fork-session does, and goes on there.
func (w *world) forked(path string) {
	w.t.Helper()
	f, fork := w.talk(sessionB)
	w.add(fork, bytes.ReplaceAll(w.read(path), []byte(`"sessionId":"`+sessionA), []byte(`"sessionId":"`+sessionB)))
	w.addAndSync(fork, f.turn(11_000, "forked", "on"))
	_, was := w.messages(sessionA)
	_, is := w.messages(sessionB)
	kit.Check(w.t, strings.HasSuffix(texts(is), "forked | on") && !strings.Contains(texts(was), "forked"),
		"the fork says %q, its origin %q", texts(is), texts(was))
}

// TestMessagesStayBounded says a thousand things: two hundred are kept.
func TestMessagesStayBounded(t *testing.T) {
	w, c, path := aloneTalk(t, sessionA)
	for range 10 {
		var lines []byte
		for range 50 {
			lines = append(lines, c.turn(10_000, fmt.Sprint("question ", c.n), strings.Repeat("answer ", 50))...)
		}
		w.addAndSync(path, lines)
	}
	total, list := w.messages(sessionA)
	kit.Check(t, total == 200 && len(list) == 200, "%d messages are kept, %d shown, want 200", total, len(list))
	w.look("", 0, "messages", sessionA, "--clear")
	w.addAndSync(path, c.turn(10_000, "after", "all"))
	_, list = w.messages(sessionA)
	kit.Check(t, texts(list) == "after | all", "after clear: %q", texts(list))
}

// documentVersion is what the tests read of the server's.
type documentVersion struct {
	Version int64  `json:"version"`
	Change  string `json:"change"`
	SHA256  string `json:"sha256"`
}

// TestLinkedDocument follows a document from its link to its deletion, through its changes by Claude and by others.
func TestLinkedDocument(t *testing.T) {
	w, c, path := aloneTalk(t, sessionA)
	w.addAndSync(path, c.turn(10_000, "hello", "hello"))
	must(t, os.MkdirAll(filepath.Join(w.cwd(), "docs"), 0o700))
	spec := filepath.Join(w.cwd(), "docs", "spec.md")
	must(t, os.WriteFile(spec, []byte("# One\n"), 0o600))
	for mistake, why := range map[string]string{"docs/none.md": "no file", "docs": "directory", "../../key": "outside", "/etc/passwd": "outside"} {
		if !filepath.IsAbs(mistake) {
			mistake = filepath.Join(w.cwd(), mistake)
		}
		out := w.ccship("link", "add", mistake, "--session", sessionA)
		kit.Check(t, out.code == 1 && strings.Contains(out.stderr, why) && strings.Count(strings.TrimSpace(out.stderr), "\n") <= 1,
			"%s: %+v", mistake, out)
	}
	w.look("", 0, "link", "add", spec, "--session", sessionA)
	w.sync()
	w.document(sessionA, "docs/spec.md", "# One\n")
	must(t, os.WriteFile(spec, []byte("# Two\n"), 0o600)) // another program
	w.eventuallyDocument(sessionA, "docs/spec.md", "# Two\n")
	large := strings.Repeat("0123456789abcdef", 20_000) // above what goes inline
	w.add(path, c.calls(11_000, "toolu_w", "Write", map[string]any{"file_path": spec, "content": large}))
	must(t, os.WriteFile(spec, []byte(large), 0o600))
	w.add(path, c.returns("toolu_w", "ok", false))
	w.eventuallyDocument(sessionA, "docs/spec.md", large)
	w.d.Kill()
	must(t, os.WriteFile(spec, []byte("# Four\n"), 0o600)) // while the daemon is down
	w.start()
	w.eventuallyDocument(sessionA, "docs/spec.md", "# Four\n")
	must(t, os.Remove(spec))
	eventually(t, "the deletion is on the server", 60*time.Second, func() bool {
		w.sync()
		v := w.versions(sessionA, "docs/spec.md")
		return len(v) > 0 && v[len(v)-1].Change == "deleted"
	})
	last := int64(0)
	for _, v := range w.versions(sessionA, "docs/spec.md") {
		kit.Check(t, v.Version >= last, "versions go back: %+v", v)
		last = v.Version
	}
	w.verified()
}

func (w *world) documentAddress(session, path string) string {
	return "/api/sessions/" + url.PathEscape(session) + "/documents/" + url.PathEscape(path)
}

// versions are those of a document on the server, oldest first.
func (w *world) versions(session, path string) []documentVersion {
	w.t.Helper()
	_, body := w.exact.get(w.documentAddress(session, path) + "/versions")
	var list struct{ Versions []documentVersion }
	err := json.Unmarshal(body, &list)
	kit.Require(w.t, err == nil, "versions: %v\n%s", err, body)
	slices.SortFunc(list.Versions, func(a, b documentVersion) int { return int(a.Version - b.Version) })
	return list.Versions
}

// document demands the newest content of a document on the server.
func (w *world) document(session, path, content string) {
	w.t.Helper()
	code, body := w.exact.get(w.documentAddress(session, path))
	kit.Check(w.t, code == 200 && string(body) == content, "the server has %d %.80q, want %.80q", code, body, content)
}

func (w *world) eventuallyDocument(session, path, content string) {
	w.t.Helper()
	eventually(w.t, "the new version is on the server", 60*time.Second, func() bool {
		w.sync()
		code, body := w.exact.get(w.documentAddress(session, path))
		return code == 200 && string(body) == content
	})
}
