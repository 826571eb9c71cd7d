//go:build unix

package claude_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// terminal is a Claude Code with a screen and a keyboard, in a tmux of its own.
type terminal struct {
	t      testing.TB
	socket string
}

// open starts an interactive Claude Code. The test is skipped where there is no tmux.
func (h *home) open(args ...string) *terminal {
	h.t.Helper()
	return h.openIn("bypass permissions", args...)
}

// openIn waits for the permission mode that it shows.
func (h *home) openIn(mode string, args ...string) *terminal {
	h.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		h.t.Skipf("no terminal: %v", err)
	}
	cmd := h.claude(context.Background(), args...)
	line := []string{"exec", "env", "-i"}
	for _, variable := range append(cmd.Env, "TERM=xterm-256color") {
		line = append(line, quoted(variable))
	}
	line = append(line, quoted(cmd.Path))
	for _, arg := range cmd.Args[1:] {
		if arg != "-p" {
			line = append(line, quoted(arg))
		}
	}
	c := &terminal{h.t, filepath.Join(h.dir, "tmux")}
	c.tmux("new-session", "-d", "-x", "150", "-y", "50", "-c", h.cwd(), strings.Join(line, " "))
	c.shows(mode + " on")
	return c
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// tmux runs one of its commands and returns what it prints.
func (c *terminal) tmux(args ...string) string {
	c.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", c.socket, "-f", "/dev/null"}, args...)...).CombinedOutput()
	kit.Require(c.t, err == nil, "tmux %v: %v\n%s", args, err, out)
	return string(out)
}

func (c *terminal) screen() string { return c.tmux("capture-pane", "-p") }

// shows waits until the screen has a text.
func (c *terminal) shows(text string) {
	c.t.Helper()
	defer func() {
		if c.t.Failed() {
			c.t.Logf("the screen is\n%s", c.screen())
		}
	}()
	eventually(c.t, fmt.Sprintf("the screen shows %q", text), time.Minute, func() bool {
		return strings.Contains(c.screen(), text)
	})
}

// keys presses keys, with a pause after each, as a person does: what comes at once counts as pasted.
func (c *terminal) keys(names ...string) {
	c.t.Helper()
	for _, name := range names {
		c.tmux("send-keys", name)
		<-time.After(300 * time.Millisecond)
	}
}

// say types a line.
func (c *terminal) say(text string) {
	c.t.Helper()
	c.tmux("send-keys", "-l", text)
	c.shows(text)
	<-time.After(time.Second)
	c.keys("Enter")
}

// ask types a prompt and waits for the answer that repeats it.
func (c *terminal) ask(text string) {
	c.t.Helper()
	c.say(text)
	c.shows("You said: " + text)
}

// end leaves Claude Code and waits for it to be gone.
func (c *terminal) end() {
	c.t.Helper()
	c.say("/exit")
	eventually(c.t, "Claude Code ends", time.Minute, func() bool {
		return exec.Command("tmux", "-S", c.socket, "has-session").Run() != nil
	})
}

// close takes away a terminal that is still there.
func (c *terminal) close() { _ = exec.Command("tmux", "-S", c.socket, "kill-server").Run() }

// messages is a session's short history, with a line for each message.
func (w *world) messages(session string) string {
	w.t.Helper()
	var list struct {
		Messages []struct{ Type, Role, Content string }
	}
	w.json(&list, "messages", session)
	var lines strings.Builder
	for _, m := range list.Messages {
		fmt.Fprintf(&lines, "%s %s: %s\n", m.Type, m.Role, strings.ReplaceAll(m.Content, "\n", " "))
	}
	return lines.String()
}

// endless is a tool call that does not end by itself for long.
var endless = []call{{name: "Bash", input: json.RawMessage(`{"command":"timeout 100 tail -f /dev/null","description":"Wait"}`)}}

// TestRealClaudeTerminal does what a person does at a terminal: goes back with Esc Esc, types while a tool runs,
// interrupts one, and clears. The history of the session says so, and every line is on the server.
func TestRealClaudeTerminal(t *testing.T) {
	kit.OnlyInLab(t)
	for _, version := range allVersions() {
		t.Run(version, func(t *testing.T) {
			program := installed(t, version)
			api := newStub(t,
				script{when: "short tool", says: []answer{{tools: wait("6")}, {text: "Short done."}}},
				script{when: "slow tool", says: []answer{{tools: endless}, {text: "Slow done."}}})
			h := newHome(t, program, api)
			h.version = version
			w := newWorld(h)
			w.start()
			c := h.open()
			defer c.close()
			c.ask("first prompt")
			c.ask("second prompt")
			c.keys("Escape", "Escape")
			c.shows("Rewind")
			c.keys("Up", "Enter", "Enter")
			eventually(t, "the second prompt is taken back", time.Minute, func() bool {
				return !strings.Contains(c.screen(), "said: second")
			})
			c.keys("C-e", "C-u") // old versions leave the cursor at the beginning
			c.ask("another way")
			session := mains(t, w)[0]
			c.say("short tool")
			w.writes(session, "sleep 6")
			c.say("typed meanwhile")
			c.shows("Short done.")
			c.say("slow tool")
			w.writes(session, "tail -f")
			c.keys("Escape")
			c.shows("Interrupted")
			w.sync()
			w.has(session, []string{"first prompt", "another way", "short tool", "typed meanwhile", "slow tool", "interrupted "},
				[]string{"second prompt", "Slow done"})
			c.say("/clear")
			c.say("after the clear")
			eventually(t, "there is a second transcript", time.Minute, func() bool { return len(mains(t, w)) == 2 })
			w.sync()
			for _, name := range mains(t, w) {
				if name != session {
					w.has(name, []string{"after the clear"}, []string{"first prompt"})
				}
			}
			c.end()
			w.verify()
		})
	}
}

// mains is the names of the main transcripts.
func mains(t testing.TB, w *world) (names []string) {
	t.Helper()
	for name := range transcripts(t, w.projects()) {
		if !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	return names
}

// writes waits until Claude Code has written a text into a transcript.
func (w *world) writes(session, text string) {
	w.t.Helper()
	path := transcripts(w.t, w.projects())[session]
	eventually(w.t, "the transcript has "+text, time.Minute, func() bool { return strings.Contains(string(read(w.t, path)), text) })
}

// has waits until a session's history has some texts, and demands that it has no others.
func (w *world) has(session string, want, not []string) {
	w.t.Helper()
	got := ""
	defer func() {
		if w.t.Failed() {
			w.t.Logf("the history is\n%s", got)
		}
	}()
	eventually(w.t, "the history is whole", time.Minute, func() bool {
		got = w.messages(session)
		for _, text := range want {
			if !strings.Contains(got, text) {
				return false
			}
		}
		return true
	})
	for _, text := range not {
		kit.Check(w.t, !strings.Contains(got, text), "the history of %s has %q", session, text)
	}
}
