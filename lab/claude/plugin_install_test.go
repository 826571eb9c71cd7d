//go:build unix

package claude_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

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
	if out, err := cmd.CombinedOutput(); err != nil {
		h.t.Fatalf("%s: %v\n%s", command, err, out)
	}
}
