package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/e2e/kit"
)

// asServer in the environment makes the test binary be the program, for tests that need to kill it.
const asServer = "CCSHIP_SERVER_TEST_MAIN"

func TestMain(m *testing.M) {
	asKilled()
	if os.Getenv(asServer) != "" {
		main()
	}
	testscript.Main(m, map[string]func(){
		"ccship-server": main,
		"systemctl":     kit.FakeSystemctl, "journalctl": kit.FakeJournalctl, "loginctl": kit.FakeLoginctl,
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			if strings.HasSuffix(e.WorkDir, "script-service") {
				release, err := kit.LockPorts()
				if err != nil {
					return err
				}
				e.Defer(func() { _ = release() }) // last
			}
			known, home := e.WorkDir+"/systemd", e.WorkDir+"/home"
			for name, value := range map[string]string{
				"XDG_STATE_HOME": e.WorkDir + "/state", "HOME": home, "FAKE_SYSTEMD": known, "FAKE_LINGER": "yes", "USER": "kim",
			} {
				e.Setenv(name, value)
			}
			e.Defer(func() { kit.FakeSystemd{Dir: known, Unit: "ccship-server.service"}.Stop() })
			return errors.Join(os.Mkdir(known, 0o700), os.Mkdir(home, 0o700))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits CODE ARGS… runs the program, which must end with that code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec("ccship-server", args[1:]...)
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("run: %v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit %d, want %s", code, args[0])
	}
}

// TestFlagWords: what a flag takes is one word, neither the flag's own name nor a type of Go.
func TestFlagWords(t *testing.T) { showtest.FlagWords(t, newRoot()) }
