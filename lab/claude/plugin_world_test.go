//go:build unix

package claude_test

import (
	"context"
	"encoding/json"
	"fmt"
	"github.com/ccship/ccship/e2e/kit"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// toolPrefix is before the names of the plugin's tools.
const toolPrefix = "mcp__plugin_ccship_ccship__"

// model has a window of 200,000 tokens, and is compacted at limit.
const (
	model = "claude-sonnet-4-5"
	limit = 167_000
)

// withPlugin has Claude Code of a home use the plugin of this checkout, with the programs under test on PATH.
func (w *world) withPlugin() {
	w.t.Helper()
	dir := kit.Try(filepath.Abs(filepath.Join("..", "..", "packaging", "claude-plugin"))).Must(w.t)
	w.flags = []string{"--plugin-dir", dir, "--model", model}
	w.env = []string{
		"PATH=" + filepath.Dir(w.bin.ccship) + string(os.PathListSeparator) + os.Getenv("PATH"),
		"XDG_RUNTIME_DIR=" + filepath.Join(w.dir, "run"), "CCSHIP_API_KEY_FILE=" + w.keyFile(), "CCSHIP_SERVER_URL=" + w.server.String(),
	}
}

// tale is what happens with the plugin.
type tale struct {
	*world
	api    *stub
	linked string // the session with a document
	filled string // the session whose context was filled
}

// requests is how many the conversations have made.
func (s *tale) requests() int { return len(s.api.told(0)) }

// json runs a verb of ccship with --json and reads what it prints.
func (w *world) json(into any, args ...string) {
	w.t.Helper()
	out, code := w.ccship(append(args, "--json")...)
	err := json.Unmarshal([]byte(out), into)
	kit.Require(w.t, code == 0 && err == nil, "ccship %v: exit %d, %v\n%s", args, code, err, out)
}

// checkpoint is what the tests read of one.
type checkpoint struct {
	ID      string
	Trigger string   `json:"trigger_type"`
	Used    int64    `json:"tokens_used"`
	Budget  int64    `json:"token_budget"`
	Files   []string `json:"active_files"`
	Summary string
}

// checkpoints are a session's, newest first; an error while the daemon does not know the session.
func (w *world) checkpoints(session string) ([]checkpoint, error) {
	w.t.Helper()
	var list struct{ Checkpoints []checkpoint }
	out, code := w.ccship("checkpoint", "list", "--session", session, "--json")
	if code != 0 {
		return nil, fmt.Errorf("exit %d: %s", code, out)
	}
	err := json.Unmarshal([]byte(out), &list)
	return list.Checkpoints, err
}

func triggers(list []checkpoint) []string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.Trigger
	}
	return names
}

// madeCheckpoints waits until a session has these, newest first.
func (w *world) madeCheckpoints(session string, want ...string) []checkpoint {
	w.t.Helper()
	var list []checkpoint
	var err error
	defer func() {
		if w.t.Failed() {
			w.t.Logf("it has %q, %v", triggers(list), err)
		}
	}()
	eventually(w.t, "the session has the checkpoints "+strings.Join(want, ", "), 20*time.Second, func() bool {
		list, err = w.checkpoints(session)
		return err == nil && slices.Equal(triggers(list), want)
	})
	return list
}

// versions is what the server has of a document of a session, the first version first.
func (w *world) versions(session, path string) []string {
	w.t.Helper()
	base := "/api/sessions/" + url.PathEscape(session) + "/documents/" + url.PathEscape(path)
	code, body := w.get(base + "/versions")
	if code == http.StatusNotFound {
		return nil
	}
	var list struct {
		Versions []struct {
			Version int64
			Change  string
		}
	}
	kit.Require(w.t, code == http.StatusOK && json.Unmarshal(body, &list) == nil, "versions of %s: %d %.500s", path,
		code, body)
	slices.Reverse(list.Versions)
	var contents []string
	for _, v := range list.Versions {
		code, body := w.get(base + "?version=" + jsonText(v.Version))
		kit.Require(w.t, code == http.StatusOK, "version %d of %s: %d %.500s", v.Version, path, code, body)
		contents = append(contents, string(body))
	}
	return contents
}

func jsonText(v any) string {
	text, _ := json.Marshal(v) // numbers and texts
	return string(text)
}

// tell runs steps that stand on each other, and after each demands that the server has every line.
func (s *tale) tell(t *testing.T, steps []chapter) {
	for _, step := range steps {
		ok := t.Run(step.name, func(t *testing.T) {
			defer s.lend(t)()
			step.tell(s)
			s.settled()
		})
		if !ok {
			t.FailNow()
		}
	}
}

// chapter is one part of what happens with the plugin.
type chapter struct {
	name string
	tell func(*tale)
}

// install types the command that `ccship plugin` prints, in another home whose Claude Code finds the same daemon: the
// plugin is there in its next session, and gone after the commands to leave it.
func (s *tale) install() {
	other := newHome(s.t, s.program, s.api)
	other.flags, other.env = []string{"--model", model}, s.env
	must(s.t, os.Symlink(s.program, filepath.Join(other.dir, "claude")))
	var p struct{ Path, Command string }
	s.json(&p, "plugin")
	other.shell(p.Command)
	s.tellAgain(func() string {
		from := s.requests()
		s.expect(other.prompt("hello, installed"), "hello, installed")
		if first := s.api.told(from)[0]; strings.Count(first, started) != 1 || !s.api.offered(toolPrefix+"link_document") {
			return fmt.Sprintf("the plugin is not there:\n%.3000s", first)
		}
		return ""
	})
	other.shell("claude plugin uninstall ccship@ccship && claude plugin marketplace remove ccship")
	s.json(&p, "plugin", "--remove")
	from := s.requests()
	s.expect(other.prompt("hello, without"), "hello, without")
	if first := s.api.told(from)[0]; strings.Contains(first, started) || s.api.offered(toolPrefix+"link_document") {
		s.t.Errorf("the plugin is still there:\n%.3000s", first)
	}
}

// shell runs a command as a person does who has claude on PATH.
func (h *home) shell(command string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	ownGroup(cmd)
	cmd.Dir = h.cwd()
	cmd.Env = append(h.claude(ctx).Env, "PATH="+h.dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	kit.Require(h.t, err == nil, "%s: %v\n%s", command, err, out)
}
