//go:build unix

package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// linkRequest is what the tests read of one.
type linkRequest struct{ Path, State, Reason string }

// requestLink asks the server to have a document linked or unlinked, as the viewer does.
func (w *world) requestLink(method, session, path string) {
	w.t.Helper()
	body, err := json.Marshal(map[string]string{"path": path})
	must(w.t, err)
	address := w.exact.url.String() + "/api/sessions/" + url.PathEscape(session) + "/documents"
	r, err := http.NewRequest(method, address, strings.NewReader(string(body)))
	must(w.t, err)
	r.Header.Set("X-API-Key", w.exact.key)
	answer, err := http.DefaultClient.Do(r)
	must(w.t, err)
	must(w.t, answer.Body.Close())
	if answer.StatusCode != http.StatusAccepted {
		w.t.Errorf("%s %s: %s", method, path, answer.Status)
	}
}

// linkRequests are a session's, by path.
func (w *world) linkRequests(session string) map[string]linkRequest {
	w.t.Helper()
	_, body := w.exact.get("/api/sessions/" + url.PathEscape(session) + "/link-requests")
	var list struct {
		Requests []linkRequest `json:"link_requests"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		w.t.Fatalf("link requests: %v\n%s", err, body)
	}
	byPath := map[string]linkRequest{}
	for _, x := range list.Requests {
		byPath[x.Path] = x
	}
	return byPath
}

// TestLinkRequests has documents linked and unlinked by the server of this machine, and refused where the file is
// not the session's.
func TestLinkRequests(t *testing.T) {
	w := aloneWorld(t)
	c := newTalk(sessionA, w.cwd())
	path := w.path("-work-shop", sessionA+".jsonl")
	must(t, os.WriteFile(filepath.Join(w.cwd(), "plan.md"), []byte("# Plan\n"), 0o600))
	must(t, os.Symlink(w.keyFile(), filepath.Join(w.cwd(), "notes.md")))
	w.env = append(w.env, "CCSHIP_VIEWER_LINKS=true")
	w.start()
	w.addAndSync(path, c.turn(10_000, "hello", "hello"))
	w.requestLink(http.MethodPost, sessionA, "plan.md")
	w.requestLink(http.MethodPost, sessionA, "notes.md")
	eventually(t, "both link requests are answered", 60*time.Second, func() bool {
		w.add(path, c.turn(10_000, "go", "on")) // the answer to it says that there are link requests
		w.sync()
		list := w.linkRequests(sessionA)
		return list["plan.md"].State == "done" && list["notes.md"].State == "refused"
	})
	if list := w.linkRequests(sessionA); list["notes.md"].Reason == "" {
		t.Errorf("refused without a reason: %+v", list)
	}
	w.eventuallyDocument(sessionA, "plan.md", "# Plan\n") // the daemon answers first, and sends it then
	if code, _ := w.exact.get(w.documentAddress(sessionA, "notes.md")); code != http.StatusNotFound {
		t.Errorf("a link to the key: %d", code)
	}
	w.requestLink(http.MethodDelete, sessionA, "plan.md")
	eventually(t, "the link is ended", 60*time.Second, func() bool {
		w.addAndSync(path, c.turn(10_000, "go", "on"))
		return !strings.Contains(w.ccship("link", "list", "--session", sessionA, "--json").stdout, "plan.md")
	})
	w.verified()
}
