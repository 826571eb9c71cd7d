package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/internal/sys"
)

// patientCCShip is ccship whose hooks have all the time they need: on a busy machine the time of a real one is up before
// it is answered.
const patientCCShip = "ccship-patient"

// TestHookVerb: `ccship hook` is what ccship-hook is, for plugins that call it, with the flags of ccship too. The tests of
// cmd/ccship-hook say the rest.
func TestHookVerb(t *testing.T) {
	const input = `{"session_id":"s-1","prompt_id":"p","cwd":"/home/kim/shop"}`
	socket := socketPath(t)
	ln, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"schema_version":1,"text":"news"}`))
	}))
	_ = server.Listener.Close()
	server.Listener = ln
	server.Start()
	defer server.Close()
	none := filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		args   []string
		socket string
		want   string
	}{
		{[]string{"hook", "session-start"}, socket, `"hookEventName":"SessionStart","additionalContext":"news"`},
		{[]string{"hook", "post-tool-use"}, socket, `"hookEventName":"PostToolUse","additionalContext":"news"`},
		{[]string{"hook", "--socket", socket, "post-tool-use"}, none, `"additionalContext":"news"`},
		{[]string{"--socket", socket, "hook", "post-tool-use"}, none, `"additionalContext":"news"`},
		{[]string{"hook", "post-tool-use"}, none, ""},
		{[]string{"hook", "stop"}, socket, ""},
		{[]string{"hook"}, socket, ""},
		{[]string{"hook", "post-tool-use", "--nonsense"}, socket, ""},
	} {
		cmd := exec.CommandContext(t.Context(), patientCCShip, c.args...)
		cmd.Env = []string{"HOME=" + t.TempDir(), "CCSHIP_SOCKET=" + c.socket}
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) || c.want == "" && len(out) > 0 {
			t.Errorf("%v: it prints %q, %v", c.args, out, err)
		}
	}
}

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
		if err != nil {
			t.Fatal(err)
		}
		got, err := sys.Sockets(env)
		cfg, wrong := config.Load(nil, env)
		if (err == nil) != (wrong == nil) {
			t.Errorf("%s: %v, but the configuration says %v", c.name, err, wrong)
		}
		if want := show.Sockets(cfg); err == nil && strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: a hook asks %q, other commands %q", c.name, got, want)
		}
	}
}
