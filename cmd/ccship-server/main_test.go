package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// asServer in the environment makes the test binary be the program, for tests that need to kill it.
const asServer = "CCSHIP_SERVER_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		main()
	}
	testscript.Main(m, map[string]func(){"ccship-server": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", e.WorkDir+"/state")
			return nil
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
