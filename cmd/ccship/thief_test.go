package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/e2e/kit"
)

// thief listens at a server's address, and notes what it is asked and whether it is shown a key.
type thief struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
	keys  []string
}

func newThief(t *testing.T, answer http.HandlerFunc) *thief {
	th := &thief{}
	th.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		th.mu.Lock()
		th.asked = append(th.asked, r.URL.Path)
		if r.Header.Get("X-API-Key") != "" || r.Header.Get("Authorization") != "" {
			th.keys = append(th.keys, r.Method+" "+r.URL.Path)
		}
		th.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(th.Close)
	return th
}

// took returns what the thief was asked and shown since the last time.
func (th *thief) took() (asked, keys []string) {
	th.mu.Lock()
	defer th.mu.Unlock()
	asked, keys, th.asked, th.keys = th.asked, th.keys, nil, nil
	return asked, keys
}

// neverAsk are commands that are not run here, and why they show no key.
var neverAsk = map[string]string{
	"run": "is the daemon: TestImpostor in e2e", "capture": "runs the daemon", "up": "starts its own server: TestUpOnAnothersPort in e2e",
	"mcp": "asks the socket only", "guard": "ends what `ccship up` started", "service": "only the service",
	"completion": "prints text",
	"help":       "prints text", "__complete": "is completion", "__completeNoDesc": "is completion",
}

// thiefArgs are the arguments of commands that need some, and flags of those that must not do more than ask.
func thiefArgs(file string) map[string][]string {
	return map[string][]string{
		"setup": {"--no-install", "--yes"}, "search": {"cart"}, "why": {"HEAD"}, "show": {"deadbeef"}, "export": {"deadbeef"},
		"restore": {"deadbeef"}, "resume": {"deadbeef"}, "forget": {"deadbeef", "--yes"}, "messages": {"deadbeef"}, "checkpoint show": {"c"}, "link add": {file},
		"link rm": {file}, "exclude": {filepath.Dir(file)}, "outbox retry": {"1"}, "outbox drop": {"1"},
		"outbox show": {"1"}, "redact test": {file}, "redact key": {file}, "config": {"locale", "C"},
		"pause": {"1h"}, "share": {"deadbeef"},
	}
}

// leaves calls f for every command that does something.
func leaves(cmd *cobra.Command, f func(words []string)) {
	for _, c := range cmd.Commands() {
		if neverAsk[c.Name()] != "" && c.Parent().Parent() == nil {
			continue
		}
		if !c.HasSubCommands() {
			f(strings.Fields(c.CommandPath())[1:])
		}
		leaves(c, f)
	}
}

// TestThief: no command shows the key to another user who listens at the server's address as any kind of server.
func TestThief(t *testing.T) {
	jsonHome(t)
	for name, answer := range map[string]http.HandlerFunc{
		"claims to be the server": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Ccship-Protocol", "1")
			_, _ = io.WriteString(w, `{"success":true,"store":"x","proof":"`+r.URL.Query().Get("proof")+`","sessions":[],"hits":[]}`)
		},
		"claims to be a plain server": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/api/proof" {
				http.NotFound(w, r)
				return
			}
			_, _ = io.WriteString(w, `{"success":true,"entries_stored":0}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			th := newThief(t, answer)
			flags, file := thiefHome(t, th.URL)
			args := thiefArgs(file)
			asking := map[string]bool{}
			leaves((&app{App: show.App{Stdout: io.Discard, Stderr: io.Discard}}).root(), func(words []string) {
				command := strings.Join(words, " ")
				all := append(append(words, args[command]...), flags...)
				if command == "setup" {
					all = append(all, "--server-url", th.URL)
				}
				code, _, said := inProcess(t, all...)
				kit.Check(t, code != show.ExitUsage || !strings.Contains(said, "arg(s)"),
					"%s needs arguments here: %s", command, said)
				asked, keys := th.took()
				kit.Check(t, len(keys) == 0, "%s shows the key to whoever listens: %q", command, keys)
				asking[command] = len(asked) > 0
			})
			for _, command := range []string{"list", "show", "export", "restore", "resume", "search", "usage", "doctor", "setup"} {
				kit.Check(t, asking[command], "%s has asked nobody: the test shows nothing", command)
			}
		})
	}
}

// thiefHome is a user whose daemon has met a server at an address before.
func thiefHome(t *testing.T, server string) (flags []string, file string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("CCSHIP_SERVER_URL", server)
	t.Setenv("CCSHIP_API_KEY_FILE", filepath.Join(dir, "key"))
	t.Chdir(dir)
	state := filepath.Join(dir, "state")
	kit.Must(t, os.MkdirAll(state, 0o700))
	file = filepath.Join(dir, "sub", "file.md")
	kit.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	for path, text := range map[string]string{"key": "ccs_precious\n", "state/proven_servers": server + "\n", "sub/file.md": "text\n"} {
		kit.Must(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600))
	}
	return []string{"--socket", filepath.Join(dir, "s"), "--state-dir", state, "--roots", filepath.Join(dir, "projects")}, file
}
