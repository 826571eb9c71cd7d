//go:build unix

package e2e

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

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
	jar, err := cookiejar.New(nil)
	must(t, err)
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

// runningUp runs `ccship up` over one session, and returns the address of its server and a one-time link into it, once
// all of the session is there.
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

// storesNoneOf demands that the database of `up` holds neither its key, nor the visitor's login, nor a ticket: a user
// who gets a copy of it cannot log in.
func (v *visitor) storesNoneOf(dir, ticket string) {
	v.t.Helper()
	key, err := os.ReadFile(filepath.Join(dir, "api_key"))
	must(v.t, err)
	at, err := url.Parse(v.base)
	must(v.t, err)
	secrets := []string{strings.TrimSpace(string(key)), ticket}
	for _, c := range v.client.Jar.Cookies(at) {
		secrets = append(secrets, c.Value)
	}
	if len(secrets) < 3 {
		v.t.Error("the visitor has no cookie")
	}
	files, err := filepath.Glob(filepath.Join(dir, "server.db*"))
	must(v.t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(v.t, err)
		for _, secret := range secrets {
			if strings.Contains(string(text), secret) {
				v.t.Errorf("%s holds %.8s… in clear", file, secret)
			}
		}
	}
	if len(files) == 0 {
		v.t.Errorf("there is no database in %s", dir)
	}
}

// TestUpIsClosed: every user of the machine reaches the server of `up`, so it asks each who they are. The link that
// `up` prints logs in one browser, once.
func TestUpIsClosed(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	up, base, session, link := runningUp(t, h)
	stranger := newVisitor(t, base)
	for _, path := range []string{"/", "/sessions/" + session, "/search?q=a", "/usage", "/events", "/account", "/api/sessions",
		"/sessions/" + session + "/document?path=.env", "/sessions/" + session + "/export?format=jsonl"} {
		if code := stranger.status(path, nil); code != http.StatusUnauthorized {
			t.Errorf("%s answers %d to somebody who is not logged in, want 401", path, code)
		}
	}
	if code := stranger.status("/sessions/"+session+"/documents", url.Values{"path": {".env"}, "action": {"link"}}); code != http.StatusUnauthorized {
		t.Errorf("a stranger may ask for documents: %d", code)
	}
	_, ticket, ok := strings.Cut(link, "?ticket=")
	if !ok {
		t.Fatalf("up prints no one-time link:\n%s", up.Log)
	}
	reader := newVisitor(t, base)
	if code := reader.status("/login", url.Values{"ticket": {ticket}}); code != http.StatusOK {
		t.Errorf("the link does not log in: %d", code)
	}
	for _, path := range []string{"/", "/sessions/" + session, "/account"} {
		if code := reader.status(path, nil); code != http.StatusOK {
			t.Errorf("%s answers %d to the reader with the link", path, code)
		}
	}
	if code := stranger.status("/login", url.Values{"ticket": {ticket}}); code != http.StatusUnauthorized {
		t.Errorf("the link works twice: %d", code)
	}
	up.MustStop(t)
	reader.storesNoneOf(filepath.Join(h.dir, "xdg", "state", "ccship", "up"), ticket)
}

// TestUpForgetsLogins: a browser shows its cookie to any program that listens on the port while `up` does not run. So a
// login ends with the server that it was made at.
func TestUpForgetsLogins(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	up, base, _, link := runningUp(t, h)
	_, ticket, _ := strings.Cut(link, "?ticket=")
	reader := newVisitor(t, base)
	if code := reader.status("/login", url.Values{"ticket": {ticket}}); code != http.StatusOK {
		t.Fatalf("the link does not log in: %d", code)
	}
	up.MustStop(t)
	up = h.launch(kit.Program(t, "ccship"), "up")
	eventually(t, "up runs again", time.Minute, func() bool { return strings.Contains(up.Log.String(), "watching for new lines") })
	if code := reader.status("/", nil); code != http.StatusUnauthorized {
		t.Errorf("a login of the run before still works: %d", code)
	}
	up.MustStop(t)
}
