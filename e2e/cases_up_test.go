//go:build unix

package e2e

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ccship/ccship/e2e/kit"
)

// visitor is a person with a browser who can reach the server of `ccship up`.
type visitor struct {
	t      *testing.T
	base   string
	client *http.Client
}

func newVisitor(t *testing.T, base string) *visitor {
	t.Helper()
	jar := kit.Try(cookiejar.New(nil)).Must(t)
	return &visitor{t, base, &http.Client{Jar: jar}}
}

// status is what a request is answered; a form makes it a POST.
func (v *visitor) status(path string, form url.Values) int {
	v.t.Helper()
	var answer *http.Response
	var err error
	if form == nil {
		answer, err = v.client.Get(v.base + path)
	} else {
		answer, err = v.client.PostForm(v.base+path, form)
	}
	must(v.t, err)
	must(v.t, answer.Body.Close())
	return answer.StatusCode
}

// runningUp runs `ccship up` over one session, and returns its address and a one-time link once all of it is there.
func runningUp(t *testing.T, h *home) (up *kit.Process, base, session, link string) {
	t.Helper()
	h.env = []string{"CCSHIP_STATE_DIR=", "CCSHIP_SOCKET=", "CCSHIP_API_KEY_FILE="} // up keeps its own
	c := newConversation(95, h.cwd())
	h.add(h.path("-work-shop", c.session+".jsonl"), c.even(10, 1000))
	base = "http://" + kit.Address(t)
	kit.Program(t, "ccship-server")
	up = h.launch(kit.Program(t, "ccship"), "up", "--listen", strings.TrimPrefix(base, "http://"))
	eventually(t, "up has imported everything", time.Minute, func() bool {
		if up.Ended() {
			t.Fatalf("up ended with %d:\n%s", up.Code(), up.Log)
		}
		return strings.Contains(up.Log.String(), "watching for new lines")
	})
	link = regexp.MustCompile(`http://\S+/login\?ticket=\S+`).FindString(up.Log.String())
	return up, base, c.session, link
}

// storesNoneOf: whoever copies the database of `up` cannot log in: it has no key, login or ticket.
func (v *visitor) storesNoneOf(dir, ticket string) {
	v.t.Helper()
	key := kit.Try(os.ReadFile(filepath.Join(dir, "api_key"))).Must(v.t)
	at := kit.Try(url.Parse(v.base)).Must(v.t)
	secrets := []string{strings.TrimSpace(string(key)), ticket}
	for _, c := range v.client.Jar.Cookies(at) {
		secrets = append(secrets, c.Value)
	}
	kit.Check(v.t, len(secrets) >= 3, "the visitor has no cookie")
	files := kit.Try(filepath.Glob(filepath.Join(dir, "server.db*"))).Must(v.t)
	for _, file := range files {
		text := kit.Try(os.ReadFile(file)).Must(v.t)
		for _, secret := range secrets {
			kit.Check(v.t, !strings.Contains(string(text), secret), "%s holds %.8s… in clear", file, secret)
		}
	}
	kit.Check(v.t, len(files) != 0, "there is no database in %s", dir)
}

// TestUpIsClosed: every user reaches the server of `up`, so it asks who they are; its link logs in one browser, once.
func TestUpIsClosed(t *testing.T) {
	h := aloneHome(t)
	up, base, session, link := runningUp(t, h)
	stranger := newVisitor(t, base)
	for _, path := range []string{"/", "/sessions/" + session, "/search?q=a", "/usage", "/events", "/account", "/api/sessions",
		"/sessions/" + session + "/document?path=.env", "/sessions/" + session + "/export?format=jsonl"} {
		code := stranger.status(path, nil)
		kit.Check(t, code == http.StatusUnauthorized, "%s answers %d to somebody who is not logged in, want 401", path, code)
	}
	code := stranger.status("/sessions/"+session+"/documents", url.Values{"path": {".env"}, "action": {"link"}})
	kit.Check(t, code == http.StatusUnauthorized, "a stranger may ask for documents: %d", code)
	_, ticket, ok := strings.Cut(link, "?ticket=")
	kit.Require(t, ok, "up prints no one-time link:\n%s", up.Log)
	reader := newVisitor(t, base)
	kit.Equal(t, "the link does not log in", reader.status("/login", url.Values{"ticket": {ticket}}), http.StatusOK)
	for _, path := range []string{"/", "/sessions/" + session, "/account"} {
		code := reader.status(path, nil)
		kit.Check(t, code == http.StatusOK, "%s answers %d to the reader with the link", path, code)
	}
	code = stranger.status("/login", url.Values{"ticket": {ticket}})
	kit.Check(t, code == http.StatusUnauthorized, "the link works twice: %d", code)
	up.MustStop(t)
	reader.storesNoneOf(filepath.Join(h.dir, "xdg", "state", "ccship", "up"), ticket)
}

// TestUpForgetsLogins: while `up` is down any program may get the cookie, so a login ends with its server.
func TestUpForgetsLogins(t *testing.T) {
	h := aloneHome(t)
	up, base, _, link := runningUp(t, h)
	_, ticket, _ := strings.Cut(link, "?ticket=")
	reader := newVisitor(t, base)
	code := reader.status("/login", url.Values{"ticket": {ticket}})
	kit.Require(t, code == http.StatusOK, "the link does not log in: %d", code)
	up.MustStop(t)
	up = h.launch(kit.Program(t, "ccship"), "up")
	eventually(t, "up runs again", time.Minute, func() bool { return strings.Contains(up.Log.String(), "watching for new lines") })
	kit.Equal(t, "a login of the run before still works", reader.status("/", nil), http.StatusUnauthorized)
	up.MustStop(t)
}

// TestSecondDaemon: a second daemon on the same folder, with another state folder, names the first and ends; one that
// a service manager started waits, and takes over when the first ends.
func TestSecondDaemon(t *testing.T) {
	w, c, path := aloneShipped(t, 64, 5)
	out := w.ccship("run", "--state-dir", w.dir+"/other")
	kit.Check(t, out.code == 1 && strings.Contains(out.stderr, "another ccship delivers") && strings.Contains(out.stderr, "pid "),
		"a second daemon: exit %d\n%s", out.code, out.stderr)
	service := w.command(context.Background(), kit.Program(t, "ccship"), "run", "--state-dir", w.dir+"/other")
	service.Env = append(service.Env, "NOTIFY_SOCKET="+w.dir+"/nobody", "CCSHIP_SOCKET="+w.dir+"/s2")
	waits := kit.Launch(t, service)
	eventually(t, "the service waits", 30*time.Second, func() bool {
		return strings.Contains(waits.Log.String(), "waiting: another ccship delivers")
	})
	w.addAndSync(path, c.even(2, 1500))
	w.same(c.session, path)
	w.d.MustStop(t)
	w.add(path, c.even(2, 1500))
	eventually(t, "the service has taken over", 60*time.Second, func() bool {
		return bytes.Equal(w.exact.raw(c.session, ""), w.read(path))
	})
}

// TestSetup goes the way of a newcomer with the real programs and a stand-in for systemd: from nothing to
// a server and a daemon that are services, every session imported, and a link that logs a browser in.
func TestSetup(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the service is systemd's in these scripts")
	}
	t.Parallel()
	bin := t.TempDir()
	self := kit.Try(os.Executable()).Must(t)
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
