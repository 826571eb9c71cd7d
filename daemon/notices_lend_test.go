package daemon

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/daemontest"
	"github.com/ccship/ccship/state"
)

// What a hook got and did not confirm goes to the next one, before what came since; the first one's word is not taken
// any more then.
func TestHeraldTakesBack(t *testing.T) {
	h, _ := heraldOf(t, nil)
	h.lendTime = time.Nanosecond
	h.add(t, "s", "a", "b")
	h.add(t, "other", "z")
	receipt := h.lend("s", h.borrowed(t, "s"))
	h.add(t, "s", "c")
	if diff := cmp.Diff([]string{"a", "b", "c"}, h.taken(t, "s", 3)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if n := h.confirm(receipt); n != 0 {
		t.Errorf("%d were confirmed too late", n)
	}
}

// borrowed takes once what there is.
func (h *herald) borrowed(t *testing.T, session string) (list []state.Pending) {
	t.Helper()
	for len(list) == 0 && t.Context().Err() == nil {
		list = h.take(t.Context(), session)
	}
	return list
}

// What was confirmed is told, once; a word without a loan is none.
func TestHeraldIsConfirmed(t *testing.T) {
	h, stop := heraldOf(t, nil)
	h.lendTime = time.Hour
	h.add(t, "s", "a", "b")
	receipt := h.lend("s", h.borrowed(t, "s"))
	if list := h.take(t.Context(), "s"); len(list) > 0 {
		t.Errorf("handed to two: %v", list)
	}
	for _, x := range []struct {
		receipt string
		want    int
	}{{"", 0}, {"nonsense", 0}, {receipt, 2}, {receipt, 0}} {
		if n := h.confirm(x.receipt); n != x.want {
			t.Errorf("%q confirms %d, want %d", x.receipt, n, x.want)
		}
	}
	stop()
	if list := h.take(t.Context(), "s"); len(list) > 0 || h.db.HasPending("s") {
		t.Errorf("and then %v", list)
	}
}

// What is lent when the daemon stops is there for the next one; what is lent of a session that is forgotten is not.
func TestHeraldStopsWithLoans(t *testing.T) {
	h, stop := heraldOf(t, nil)
	h.lendTime = time.Hour
	h.add(t, "s", "a")
	h.add(t, "forgotten", "b")
	one, two := h.lend("s", h.borrowed(t, "s")), h.lend("forgotten", h.borrowed(t, "forgotten"))
	h.forget("forgotten")
	stop()
	if h.confirm(one)+h.confirm(two) > 0 {
		t.Error("confirmed after that")
	}
	list, err := h.db.TakePending(t.Context(), "s", "forgotten")
	if err != nil || len(list["s"]) != 1 || len(list["forgotten"]) != 0 {
		t.Errorf("%v, err %v", list, err)
	}
}

// A hook whose time was up when its answer came costs nobody a notice.
func TestNoticeOfAHookThatIsGone(t *testing.T) {
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
