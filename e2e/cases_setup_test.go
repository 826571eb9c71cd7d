//go:build unix

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ccship/ccship/e2e/kit"
)

// TestSetup goes the way of a newcomer with the real programs and a stand-in for systemd: from nothing to
// a server and a daemon that are services, every session imported, and a link that logs a browser in.
func TestSetup(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the service is systemd's in these scripts")
	}
	t.Parallel()
	bin := t.TempDir()
	self, err := os.Executable()
	must(t, err)
	for _, tool := range []string{"systemctl", "journalctl", "loginctl"} {
		must(t, os.Symlink(self, filepath.Join(bin, tool)))
	}
	for _, program := range []string{"ccship", "ccship-server"} {
		must(t, os.Symlink(kit.Program(t, program), filepath.Join(bin, program)))
	}
	testscript.Run(t, testscript.Params{
		Dir:      filepath.Join("testdata", "setup"),
		Deadline: time.Now().Add(30 * time.Minute), // far beyond the worst machine
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			// found WORD waits until a search finds it: the server derives after it has acknowledged.
			"found": func(ts *testscript.TestScript, _ bool, args []string) {
				if !kit.Within(8*time.Minute, func() bool {
					return ts.Exec("ccship", "search", args[0]) == nil && strings.Contains(ts.ReadFile("stdout"), args[0])
				}) {
					ts.Fatalf("not found: %s", args[0])
				}
			},
		},
		Setup: func(env *testscript.Env) error {
			home, err := os.MkdirTemp("", "ccsetup") // the socket's path has to stay short
			if err != nil {
				return err
			}
			release, err := kit.LockPorts()
			if err != nil {
				return err
			}
			env.Defer(func() { _ = release() }) // last
			known := filepath.Join(env.WorkDir, "systemd")
			for name, value := range map[string]string{
				"HOME": home, "USER": "kim", "LC_ALL": "C.UTF-8", "FAKE_SYSTEMD": known, "FAKE_LINGER": "yes",
				"PATH": bin + string(filepath.ListSeparator) + os.Getenv("PATH"), "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "",
				"XDG_RUNTIME_DIR": "", "CLAUDE_CONFIG_DIR": "", "SUDO_USER": "",
			} {
				env.Setenv(name, value)
			}
			env.Defer(func() {
				kit.FakeSystemd{Dir: known, Unit: "ccship.service"}.Stop()
				kit.FakeSystemd{Dir: known, Unit: "ccship-server.service"}.Stop()
				_ = os.RemoveAll(home)
			})
			project := filepath.Join(home, ".claude", "projects", "-srv-shop")
			line := []byte(`{"type":"user","sessionId":"11111111-1111-4111-8111-111111111111","uuid":"u1","parentUuid":null,` +
				`"timestamp":"2026-11-20T10:00:00.000Z","cwd":"/srv/shop","message":{"role":"user","content":"count the apples"}}` + "\n")
			return errors.Join(os.Mkdir(known, 0o700), os.MkdirAll(project, 0o700),
				os.WriteFile(filepath.Join(project, "11111111-1111-4111-8111-111111111111.jsonl"), line, 0o600))
		},
	})
}

// servesAsSystemd says whether this process takes the place of a program of systemd, and does so.
func servesAsSystemd() bool {
	switch filepath.Base(os.Args[0]) {
	case "systemctl":
		kit.FakeSystemctl()
	case "journalctl":
		kit.FakeJournalctl()
	case "loginctl":
		kit.FakeLoginctl()
	default:
		return false
	}
	return true
}
