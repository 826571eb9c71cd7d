package daemon

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/daemontest"
)

// A hook whose time was up when its answer came costs nobody a notice.
func TestNoticeOfAHookThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.watching()
	c := daemontest.Chat{Session: sessionA}
	w.write(transcriptOf(sessionA), c.Turn(140_000))
	w.sync()
	http1 := w.contract().http
	ask := func(req control.PendingRequest) (code int, a control.Pending) {
		t.Helper()
		text, err := json.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http1.Post("http://localhost/v1/pending", "application/json", bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, a
	}
	var got control.Pending
	w.until("the hook is answered", func() bool {
		_, got = ask(control.PendingRequest{Session: sessionA, Confirm: true})
		return got.Notices == 1
	})
	if again := w.allPending(sessionA, 1); again != got.Text {
		t.Errorf("the next hook is told %q, the one before %q", again, got.Text)
	}
	if code, _ := ask(control.PendingRequest{Session: sessionA, Receipt: got.Receipt}); code != http.StatusNotFound {
		t.Errorf("confirmed too late: %d", code)
	}
}
