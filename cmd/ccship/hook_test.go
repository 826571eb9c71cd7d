package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/internal/sys"
)

// TestHookSockets: a hook looks for the daemon where every other command does, whatever names the place.
func TestHookSockets(t *testing.T) {
	home := t.TempDir()
	for _, c := range []struct {
		name string
		env  map[string]string
		file string
	}{
		{"nothing", nil, ""},
		{"a runtime folder", map[string]string{"XDG_RUNTIME_DIR": "/run/user/7"}, ""},
		{"a relative runtime folder", map[string]string{"XDG_RUNTIME_DIR": "run"}, ""},
		{"XDG folders", map[string]string{"XDG_STATE_HOME": "/st", "XDG_RUNTIME_DIR": "/run/x/../y"}, ""},
		{"a socket", map[string]string{"CCSHIP_SOCKET": "~/s.sock", "XDG_RUNTIME_DIR": "/run/user/7"}, `socket = "/other"`},
		{"blank variables", map[string]string{"CCSHIP_SOCKET": " ", "CCSHIP_STATE_DIR": " "}, ""},
		{"empty variables", map[string]string{"CCSHIP_SOCKET": "", "CCSHIP_STATE_DIR": ""}, "socket = '/s'\nstate_dir = '~/x'"},
		{"a state folder", map[string]string{"CCSHIP_STATE_DIR": " /d/ "}, ""},
		{"a file", nil, "# mine\nserver_url = \"http://127.0.0.1:5000\"\nroots = ['/a']\nsocket = \"~/in/file.sock\"\n"},
		{"a file with a state folder", map[string]string{"XDG_RUNTIME_DIR": "/run/user/7"}, "state_dir = '/far'\n"},
		{"an empty socket in the file", nil, "socket = ''\nstate_dir = '/far'\n"},
		{"another file", map[string]string{"CCSHIP_CONFIG": "~/.config/ccship/config.toml"}, "socket = '/s'"},
		{"a file that is not there", map[string]string{"CCSHIP_CONFIG": "/none/config.toml"}, "socket = '/s'"},
		{"another user's home", map[string]string{"CCSHIP_SOCKET": "~root/s"}, ""},
		{"a number", nil, "socket = 5"},
		{"no TOML", nil, "socket = ["},
	} {
		env := func(name string) (string, bool) {
			if v, ok := c.env[name]; ok || name != config.HomeVariable {
				return v, ok
			}
			return home, true
		}
		file := filepath.Join(home, ".config", "ccship", "config.toml")
		err := os.MkdirAll(filepath.Dir(file), 0o700)
		if err == nil {
			err = os.WriteFile(file, []byte(c.file), 0o600)
		}
		kit.Must(t, err)
		got, err := sys.Sockets(env)
		cfg, wrong := config.Load(nil, env)
		kit.Check(t, (err == nil) == (wrong == nil), "%s: %v, but the configuration says %v", c.name, err, wrong)
		if want := show.Sockets(cfg); err == nil && strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: a hook asks %q, other commands %q", c.name, got, want)
		}
	}
}
