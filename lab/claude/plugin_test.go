//go:build unix

package claude_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestRealClaudePlugin lives with the plugin in each version: what the session's Claude is shown, what its tools do,
// and that every line is on the server all the same.
func TestRealClaudePlugin(t *testing.T) {
	kit.OnlyInLab(t)
	for _, version := range allVersions() {
		t.Run(version, func(t *testing.T) {
			program := installed(t, version)
			api := newStub(t, pluginScripts()...)
			api.keeps = true
			h := newHome(t, program, api)
			h.version = version
			w := newWorld(h)
			w.withPlugin()
			w.start()
			s := &tale{world: w, api: api}
			s.tell(t, []chapter{
				{"session start", (*tale).sessionStart},
				{"install", (*tale).install},
				{"link a document", (*tale).link},
				{"edit the document", (*tale).edit},
				{"sixty, eighty-two, ninety-one", (*tale).fill},
				{"compaction", (*tale).compaction},
				{"tools", (*tale).tools},
				{"killed before the notice", (*tale).killed},
				{"fork", (*tale).fork},
			})
			w.daemon.MustStop(w.t)
			_, strange := api.seen()
			kit.Check(t, len(strange) <= 0, "unknown requests %q", strange)
		})
	}
}

const (
	specPath   = "docs/spec.md"
	firstSpec  = "# Cart\nRound half up.\n"
	secondSpec = "# Cart\nRound half even.\n"
)

// wait is a tool call that takes a while, so that what the daemon makes of the answer before it is ready when it ends.
func wait(seconds string) []call {
	return []call{{name: "Bash", input: json.RawMessage(`{"command":"sleep ` + seconds + `","description":"Wait"}`)}}
}

// pluginScripts is what the model says with the plugin.
func pluginScripts() []script {
	use := func(tool, input string) []call { return []call{{name: tool, input: json.RawMessage(input)}} }
	return []script{
		{when: "Link the spec", says: []answer{{tools: use(toolPrefix+"link_document", `{"path":"`+specPath+`"}`)}, {text: "Linked."}}},
		{when: "Change the spec", says: []answer{
			{tools: use("Read", `{"file_path":"`+specPath+`"}`)},
			{tools: use("Edit", `{"file_path":"`+specPath+`","old_string":"half up","new_string":"half even"}`)},
			{text: "Changed."},
		}},
		{when: "Fill the context", says: []answer{
			{used: limit * 60 / 100, tools: wait("0.4")},
			{used: limit * 82 / 100, tools: wait("0.6")},
			{used: limit * 82 / 100, tools: wait("0.1")},
			{used: limit * 91 / 100, tools: wait("0.6")},
			{used: limit * 91 / 100, tools: wait("0.1")},
			{used: limit * 91 / 100, text: "Full."},
		}},
		{when: "Nearly full", says: []answer{{used: limit * 82 / 100, text: "It is getting full."}}},
		{when: "Go on", says: []answer{{used: limit * 83 / 100, tools: wait("0.3")}, {used: limit * 83 / 100, tools: wait("0.1")}, {used: limit * 83 / 100, text: "On."}}},
		{when: "Use the tools", says: []answer{
			{tools: slices.Concat(
				use(toolPrefix+"list_documents", `{}`), use(toolPrefix+"checkpoint_list", `{}`),
				use(toolPrefix+"checkpoint_create", `{"trigger":"pre_heavy","summary":"before the heavy part","port_id":"port-7"}`),
				use(toolPrefix+"get_messages", `{"limit":5}`), use(toolPrefix+"search_history", `{"text":"Link the spec"}`),
				use(toolPrefix+"checkpoint_get", `{"id":"cp-000000000000"}`),
			)},
			{text: "Used."},
		}},
	}
}

// validate has Claude Code itself check the plugin.
func (s *tale) validate() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.program, "plugin", "validate", s.flags[1])
	cmd.Dir, cmd.Env = s.cwd(), s.claude(ctx).Env
	kit.Err(s.t, "plugin validate", nil)(cmd.CombinedOutput())
}

const started = "[Session started]"

// tellAgain tries something until it goes well. A hook has little time, and on a busy machine it is up before the
// daemon has answered: then the model is not shown it. What is wrong itself is wrong each time.
func (s *tale) tellAgain(try func() (wrong string)) {
	s.t.Helper()
	for n := range 5 {
		wrong := try()
		if wrong == "" {
			return
		}
		kit.Check(s.t, n != 4, "%v", wrong)
		s.t.Log("once more: " + wrong)
	}
}

// sessionStart: the first request has the init message, and the tools.
func (s *tale) sessionStart() {
	s.validate()
	s.tellAgain(func() string {
		from := s.requests()
		s.linked = s.expect(s.prompt("hello, plugin"), "hello, plugin").SessionID
		first := s.api.told(from)[0]
		if strings.Count(first, started) != 1 || !strings.Contains(first, "Working directory: "+s.cwd()) || strings.Contains(first, "Linked documents") {
			return fmt.Sprintf("the first request has not the init message:\n%.3000s", first)
		}
		return ""
	})
	for _, tool := range []string{"link_document", "unlink_document", "list_documents", "checkpoint_list", "checkpoint_get", "checkpoint_create", "search_history", "get_messages"} {
		kit.Check(s.t, s.api.offered(toolPrefix+tool), "%s is not offered to the model", tool)
	}
}

// link has the model link a document by the tool: the daemon sees it in the transcript.
func (s *tale) link() {
	must(s.t, os.MkdirAll(filepath.Join(s.cwd(), "docs"), 0o700))
	must(s.t, os.WriteFile(filepath.Join(s.cwd(), specPath), []byte(firstSpec), 0o600))
	s.expect(s.prompt("Link the spec", "--resume", s.linked), "Linked.")
	var list struct {
		Documents []struct {
			Path    string
			Version int64
		}
	}
	eventually(s.t, "the document is linked", 20*time.Second, func() bool {
		s.json(&list, "link", "list", "--session", s.linked)
		return len(list.Documents) == 1 && list.Documents[0].Path == specPath && list.Documents[0].Version == 1
	})
	s.sync()
	kit.Equal(s.t, "the server has the versions", s.versions(s.linked, specPath), []string{firstSpec})
}

// edit: the resumed session is shown the document at once, and its edit arrives as a new version.
func (s *tale) edit() {
	s.tellAgain(func() string {
		from := s.requests()
		s.expect(s.prompt("what is there?", "--resume", s.linked), "what is there?")
		if first := s.api.told(from)[0]; !strings.Contains(first, "Linked documents") || !strings.Contains(first, "- "+specPath) {
			return fmt.Sprintf("the first request after the resume does not name the document:\n%.3000s", first)
		}
		return ""
	})
	s.expect(s.prompt("Change the spec", "--resume", s.linked), "Changed.")
	want := []string{firstSpec, secondSpec}
	eventually(s.t, "the server has both versions", 20*time.Second, func() bool {
		s.sync()
		return slices.Equal(s.versions(s.linked, specPath), want)
	})
	from := s.requests()
	s.expect(s.prompt("once more", "--resume", s.linked), "once more")
	last := s.api.told(from)[0]
	kit.Equal(s.t, "after another resume with the same documents the model has been told of them, times",
		strings.Count(last, "Linked documents"), 1)
}

// fill has the context filled in one turn: two checkpoints, and the model is shown each while the turn goes on.
func (s *tale) fill() {
	s.tellAgain(func() string {
		from := s.requests()
		s.filled = s.expect(s.prompt("Fill the context"), "Full.").SessionID
		list := s.madeCheckpoints(s.filled, "auto_90", "auto_80")
		told := s.api.told(from)
		kit.Require(s.t, len(told) == 6, "the turn made %d requests", len(told))
		return s.toldOf(told, list[1], limit*82/100, 2) + s.toldOf(told, list[0], limit*91/100, 4)
	})
}

// toldOf says what is wrong with when the model is shown a checkpoint: next is the request after the answer that
// crossed the mark. Claude Code writes that answer down some 50 ms after it has started the hook before the tool, so
// the one after the tool tells. Versions that wait for it tell the model in the next request; those that do not, in the
// one behind it.
func (s *tale) toldOf(told []string, c checkpoint, used int64, next int) string {
	s.t.Helper()
	kit.Check(s.t, c.Used == used && c.Budget == limit, "the checkpoint is %+v, want %d of %d tokens", c, used, limit)
	first := slices.IndexFunc(told, func(request string) bool { return strings.Contains(request, c.ID) })
	if first < next || first > next+1 {
		return fmt.Sprintf("%s is told in request %d of %d, want %d or the one after it; ", c.Trigger, first, len(told), next)
	}
	kit.Equal(s.t, c.Trigger+" is told, times", strings.Count(told[len(told)-1], c.ID), 1)
	s.t.Logf("%s at %d of %d tokens is told in request %d after the answer", c.Trigger, c.Used, c.Budget, first-next+1)
	return ""
}

// compaction makes the third checkpoint and no other one; the init message is not shown twice.
func (s *tale) compaction() {
	s.prompt("/compact", "--resume", s.filled)
	list := s.madeCheckpoints(s.filled, "compact", "auto_90", "auto_80")
	kit.Check(s.t, list[0].Budget == limit && list[0].Summary != "", "the checkpoint of the compaction is %+v",
		list[0])
	from := s.requests()
	s.expect(s.prompt("after it", "--resume", s.filled), "after it")
	kit.Equal(s.t, "after the compaction and a resume the init message is there, times",
		strings.Count(s.api.told(from)[0], started), 1)
	s.madeCheckpoints(s.filled, "compact", "auto_90", "auto_80")
}

// tools calls those that ask the daemon and the server; their answers are in the transcript, and so on the server.
func (s *tale) tools() {
	from := s.requests()
	s.expect(s.prompt("Use the tools", "--resume", s.linked), "Used.")
	told := s.api.told(from)
	last := told[len(told)-1]
	for _, want := range []string{specPath, `pre_heavy`, `before the heavy part`, `port-7`, `\"messages\":[`, "session " + s.linked, `there is no checkpoint`} {
		if !strings.Contains(last, want) {
			s.t.Errorf("the tools' answers lack %q:\n%.6000s", want, last[max(0, len(last)-6000):])
		}
	}
	s.madeCheckpoints(s.linked, "pre_heavy")
}

// killed has the daemon make a checkpoint that no hook has taken, kills it, and brings it back: the notice comes with
// the next turn, once.
func (s *tale) killed() {
	s.tellAgain(func() string {
		n := s.killedOnce()
		kit.Check(s.t, n <= 1, "after the kill the model is told %d times", n)
		return []string{"after the kill the model is not told", ""}[min(n, 1)]
	})
}

// killedOnce is how often the model was shown it.
func (s *tale) killedOnce() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d := s.converse(ctx)
	o := d.prompt("Nearly full")
	made := s.madeCheckpoints(o.SessionID, "auto_80")
	s.daemon.Kill()
	s.start()
	from := s.requests()
	s.expect(d.prompt("Go on"), "On.")
	told := s.api.told(from)
	d.end()
	s.madeCheckpoints(o.SessionID, "auto_80")
	return strings.Count(told[len(told)-1], made[0].ID)
}

// fork: what the copied lines had passed fires nothing again, and the fork has its origin, which has none.
func (s *tale) fork() {
	o := s.expect(s.prompt("a way of its own", "--resume", s.linked, "--fork-session"), "a way of its own")
	s.sync()
	origin := func(session string) string {
		var shown struct {
			From string `json:"forked_from"`
		}
		s.json(&shown, "show", session)
		return shown.From
	}
	eventually(s.t, "the fork has its origin", time.Minute, func() bool { return origin(o.SessionID) == s.linked })
	kit.Equal(s.t, fmt.Sprintf("the origin %s comes from", s.linked), origin(s.linked), "")
	if got, err := s.checkpoints(o.SessionID); err != nil || len(got) != 0 {
		s.t.Errorf("the fork has the checkpoints %q, %v", triggers(got), err)
	}
}
