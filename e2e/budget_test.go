//go:build unix

package e2e

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// What one must know of a program: its commands without subcommands, but for help and completion, and the flags that each
// command lists as its own.
const (
	mostCommands       = 46 // of ccship
	mostServerCommands = 26
	mostFlags          = 200 // of both
	mostOnFirstPage    = 12
)

// surface is what a program lists in its help.
type surface struct{ commands, flags []string }

var (
	commandRow = regexp.MustCompile(`^  ([a-z][a-z-]*) `)
	flagRow    = regexp.MustCompile(`^ +(?:-\w, )?(--[a-z][a-z0-9-]*)`)
)

// walk reads the help of a command and of all below it.
func (s *surface) walk(t *testing.T, program string, path ...string) {
	t.Helper()
	args := append(slices.Clone(path), "--help")
	if len(path) == 0 {
		args = []string{"help", "all"}
	}
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		t.Fatalf("%s %q: %v", program, args, err)
	}
	section, below := "", []string{}
	for line := range strings.Lines(string(out)) {
		if line[0] != ' ' && line != "\n" {
			section = strings.ToLower(strings.TrimSpace(line))
		}
		command, flag := commandRow.FindStringSubmatch(line), flagRow.FindStringSubmatch(line)
		switch {
		case strings.HasSuffix(section, "commands:") && command != nil && command[1] != "help" && command[1] != "completion":
			below = append(below, command[1])
		case section == "flags:" && flag != nil && flag[1] != "--help":
			s.flags = append(s.flags, strings.Join(append(slices.Clone(path), flag[1]), " "))
		}
	}
	if len(below) == 0 {
		s.commands = append(s.commands, strings.Join(path, " "))
	}
	for _, name := range below {
		s.walk(t, program, append(slices.Clone(path), name)...)
	}
}

// TestBudget counts commands and flags as --help lists them. A new one takes the place of another.
func TestBudget(t *testing.T) {
	t.Parallel()
	var daemon, server surface
	daemon.walk(t, kit.Program(t, "ccship"))
	server.walk(t, kit.Program(t, "ccship-server"))
	for _, c := range []struct {
		what  string
		found []string
		most  int
	}{
		{"commands of ccship", daemon.commands, mostCommands},
		{"commands of ccship-server", server.commands, mostServerCommands},
		{"flags of both", slices.Concat(daemon.flags, server.flags), mostFlags},
	} {
		if len(c.found) > c.most || len(c.found) < c.most/2 {
			t.Errorf("%d %s, at most %d: %q", len(c.found), c.what, c.most, c.found)
		}
	}
	page, err := exec.Command(kit.Program(t, "ccship"), "--help").Output()
	must(t, err)
	if n := len(regexp.MustCompile(`(?m)^  [a-z]+( all)?  +\S`).FindAll(page, -1)); n > mostOnFirstPage || n < 10 {
		t.Errorf("the first page has %d commands, at most %d:\n%s", n, mostOnFirstPage, page)
	}
}
