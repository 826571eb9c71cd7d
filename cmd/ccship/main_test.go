package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// hung is how long something may take before a test calls it hung. It is no measure of speed: a busy machine must not
// reach it.
const hung = 5 * time.Minute

// TestMain lets this binary be every program the tests run: ccship itself, and what it meets in them.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"ccship":        func() { os.Exit(command()) },
		"ccship-server": fakeServer,
		"fake-daemon":   fakeDaemon,
		"systemctl":     kit.FakeSystemctl,
		"journalctl":    kit.FakeJournalctl,
		"loginctl":      kit.FakeLoginctl,
	})
}

// TestHelpGroups: every command is in a group of the help.
func TestHelpGroups(t *testing.T) {
	a := app{}
	for _, c := range a.root().Commands() {
		kit.Check(t, c.GroupID != "" || c.Hidden, "%q is in no group", c.Name())
	}
}

// TestFlagWords: what a flag takes is one word, neither the flag's own name nor a type of Go.
func TestFlagWords(t *testing.T) {
	a := app{}
	showtest.FlagWords(t, a.root())
}

// TestScripts runs the command line against testdata/script, one home a script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("testdata", "script"),
		Condition:     func(name string) (bool, error) { return name == "root" && os.Geteuid() == 0, nil },
		UpdateScripts: os.Getenv("CCSHIP_UPDATE_GOLDEN") != "",
		Setup:         scriptHome,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"eventually": eventually,
			"exitcode":   exitcode,
			"asnobody":   asNobody,
			"until":      until,
			"hangup":     hangup,
			"unreached":  unreached,
		},
	})
}

// scriptHome gives a script a home folder of its own.
func scriptHome(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	for _, name := range []string{"HOME", "USERPROFILE"} {
		env.Setenv(name, home)
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "CLAUDE_CONFIG_DIR", "SUDO_USER"} {
		env.Setenv(name, "")
	}
	return os.MkdirAll(home, 0o700)
}

// eventually runs a program again and again until it succeeds.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: eventually PROGRAM ARGS…")
	}
	until(ts, false, append([]string{""}, args...))
}

// until runs a program again and again until what it prints matches.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until REGEXP PROGRAM ARGS…")
	}
	is := regexp.MustCompile(args[0])
	var err error
	if !kit.Within(hung, func() bool {
		err = ts.Exec(args[1], args[2:]...)
		return err == nil && is.MatchString(ts.ReadFile("stdout"))
	}) {
		ts.Fatalf("%v: never %q, at last %v", args[1:], args[0], err)
	}
}

// hangup sends SIGHUP to the daemon that answers.
func hangup(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: hangup FLAGS…")
	}
	ts.Check(ts.Exec("ccship", append([]string{"status", "--json"}, args...)...))
	var status control.Status
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &status))
	daemon, err := os.FindProcess(status.PID)
	ts.Check(err)
	ts.Check(daemon.Signal(syscall.SIGHUP))
}

// unreached runs every verb that needs the daemon, for people and with --json, and wants the same exit code and word.
func unreached(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: unreached CODE WORDS [VERB…]")
	}
	verbs := []string{
		"status", "sync", "verify", "pause", "unpause", "outbox list", "outbox list --dead", "outbox retry 1-1", "outbox drop --all",
		"forget 3f2a9c01 --yes",
	}
	if len(args) > 2 {
		verbs = args[2:]
	}
	for _, verb := range verbs {
		for _, flags := range []string{"", " --json"} {
			exitcode(ts, false, append([]string{args[0], "ccship"}, strings.Fields(verb+flags)...))
			out, words := ts.ReadFile("stdout"), ts.ReadFile("stderr")
			switch {
			case verb+flags == "status --json" && args[0] == "3":
				if out != `{"schema_version":1,"running":false}`+"\n" || words != "" {
					ts.Fatalf("status --json: %q %q", out, words)
				}
			case flags == "" && (out != "" || !strings.Contains(words, args[1]) || !strings.Contains(words, "\nhint: ") || strings.Count(words, "\n") != 2):
				ts.Fatalf("%s: %q %q, want a line with %q and a hint", verb, out, words, args[1])
			case flags != "" && (words != "" || !strings.Contains(out, `"hint":"`) || !strings.Contains(out, strings.TrimPrefix(args[1], "ccship: "))):
				ts.Fatalf("%s --json: %q %q, want a document with %q", verb, out, words, args[1])
			}
		}
	}
}

// exitcode runs a program and compares its exit code.
func exitcode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode CODE PROGRAM ARGS…")
	}
	got := "exit status 0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		got = err.Error()
	}
	if got != "exit status "+args[0] {
		ts.Fatalf("%v: %s, want exit status %s", args[1:], got, args[0])
	}
}
