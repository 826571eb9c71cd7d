//go:build unix

package claude_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

const thePlan = "# Plan\n\n1. Say hello.\n"

// planScripts is what the model says in plan mode: it writes the plan, and asks for it to be accepted. With cleared context
// a prompt made from the plan follows.
func planScripts() []script {
	text := jsonText(thePlan)
	write := call{name: "Write", input: json.RawMessage(`{"file_path":"` + planFile + `","content":` + text + `}`)}
	ask := call{name: "ExitPlanMode", input: json.RawMessage(`{"plan":` + text + `}`)}
	return []script{
		{when: "Implement the following plan", says: []answer{{text: "Carried out."}}},
		{when: "make a plan", says: []answer{{tools: []call{write}}, {tools: []call{ask}}, {text: "Carried out."}}},
	}
}

// TestRealClaudePlan accepts a plan at a terminal, with the context kept and, where the version offers it, cleared. What was
// said before stays, the work on the plan follows, and nobody went back.
func TestRealClaudePlan(t *testing.T) {
	kit.OnlyInLab(t)
	for _, version := range allVersions() {
		t.Run(version, func(t *testing.T) {
			program := installed(t, version)
			for _, choice := range []string{"Yes, clear context", "manually approve edits"} {
				t.Run(choice, func(t *testing.T) { acceptPlan(t, program, version, choice) })
			}
		})
	}
}

func acceptPlan(t *testing.T, program, version, choice string) {
	h := newHome(t, program, newStub(t, planScripts()...))
	h.version = version
	h.preset(filepath.Join(h.claudeDir(), "settings.json"), map[string]any{
		"skipDangerousModePermissionPrompt": true, "spinnerTipsEnabled": false, "showClearContextOnPlanAccept": true,
	})
	w := newWorld(h)
	w.start()
	c := h.openIn("plan mode", "--permission-mode", "plan")
	defer c.close()
	c.ask("before the plan")
	c.say("please make a plan")
	c.shows("Would you like to proceed?")
	c.shows("approve edits")
	number := c.numberOf(choice)
	if number == "" {
		t.Skipf("version %s does not offer %q", version, choice)
	}
	talk := mains(t, w)
	kit.Require(t, len(talk) == 1, "there are the transcripts %q", talk)
	c.choose(number)
	c.shows("Carried out.")
	c.ask("after the plan")
	c.end()
	w.sync()
	session := w.saying("after the plan")
	w.has(talk[0], []string{"text user: before the plan", "text user: please make a plan"}, []string{"interrupted"})
	want := []string{"text assistant: Carried out.", "text user: after the plan"}
	if strings.Contains(choice, "clear") {
		want = append(want, "text user: Implement the following plan")
		if session == talk[0] {
			want = append(want, "cleared ")
		}
	}
	w.has(session, want, []string{"interrupted"})
	answers := 5 // two to prompts, two that call a tool, and the plan's
	if session != talk[0] {
		answers = 2 // those after the plan
	}
	w.counts(session, answers)
	for _, name := range mains(t, w) {
		got, _ := w.ccship("show", "--timeline", name)
		kit.Check(t, !strings.Contains(got, "rewind"), "a rewind in %s:\n%s", name, got)
	}
	w.verify()
}

// numberOf is the number of a choice on the screen, "" when it is not there.
func (c *terminal) numberOf(choice string) string {
	c.t.Helper()
	for line := range strings.Lines(c.screen()) {
		if before, _, found := strings.Cut(line, choice); found {
			if number, _, found := strings.Cut(before, "."); found {
				return strings.Trim(number, "❯> ")
			}
		}
	}
	return ""
}

// choose moves to a choice and takes it. A dialog that has just come up ignores keys for a while.
func (c *terminal) choose(number string) {
	c.t.Helper()
	eventually(c.t, "choice "+number+" is marked", time.Minute, func() bool {
		if strings.Contains(c.screen(), "❯ "+number+".") {
			return true
		}
		c.keys("Down")
		return false
	})
	eventually(c.t, "the choice is taken", time.Minute, func() bool {
		c.keys("Enter") // on an empty prompt it does nothing
		return !strings.Contains(c.screen(), "Would you like to proceed?")
	})
}

// saying is the session in whose transcript a text is, once it is there.
func (w *world) saying(text string) (session string) {
	w.t.Helper()
	eventually(w.t, "a transcript has "+text, time.Minute, func() bool {
		for _, name := range mains(w.t, w) {
			if strings.Contains(string(read(w.t, transcripts(w.t, w.projects())[name])), text) {
				session = name
			}
		}
		return session != ""
	})
	return session
}

// counts waits until usage has so many answers of a session.
func (w *world) counts(session string, answers int) {
	w.t.Helper()
	got := 0
	counted := func() bool {
		got = w.answers(session)
		return got == answers || w.version == "2.0.76" && got > answers // it warms up agents, which count too
	}
	if !kit.Within(time.Minute, counted) {
		out, _ := w.ccship("usage", "--by", "session")
		w.t.Errorf("usage counts %d answers, want %d\n%s", got, answers, out)
	}
}

// answers is how many of a session's `ccship usage` counts.
func (w *world) answers(session string) int {
	w.t.Helper()
	var usage struct {
		Rows []struct {
			Session string
			Answers int
			Output  int64 `json:"output_tokens"`
		}
	}
	w.json(&usage, "usage", "--by", "session")
	for _, row := range usage.Rows {
		if row.Session == session && row.Output > 0 {
			return row.Answers
		}
	}
	return 0
}
