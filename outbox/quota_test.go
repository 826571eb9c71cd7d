package outbox

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

// overQuota answers 507 in the protocol's words to every request of a session.
func overQuota(sessions ...string) func(*seen) *canned {
	return func(q *seen) *canned {
		for _, s := range sessions {
			if q.session == s {
				return &canned{status: http.StatusInsufficientStorage,
					body: `{"error":{"code":"` + protocol.CodeOverQuota + `","message":"this user may have 1 sessions here"}}`}
			}
		}
		return nil
	}
}

// TestOverQuota: what the server stores no more of waits, without a dead letter, and the status says so, also while
// other transcripts are delivered. Once the limit is raised everything arrives.
func TestOverQuota(t *testing.T) {
	r := newRig(t)
	took(r)
	r.set(overQuota("session-2"))
	r.queue.add(conversation(2), rowsOf(0, 3, 3)...)
	r.start()
	r.troubled(StateRefused, KindOverQuota)
	r.add(conversation(1), rowsOf(0, 40, 10)...)
	r.until("the other transcript is delivered", func() bool { return r.drainer.Health().Entries == 40 })
	r.troubled(StateRefused, KindOverQuota)
	h := r.drainer.Health()
	kit.Check(t, strings.Contains(h.Detail, "may have 1 sessions") && strings.Contains(h.Hint, "user set"), "it says %q, hint %q", h.Detail, h.Hint)
	r.set(nil)
	r.drainer.Flush()
	r.drained()
	r.holds("session-2", numbers(0, 3)...)
	r.until("all is well", func() bool { return r.drainer.Health().State == StateOK })
	kit.Equal(t, "dead letters", r.drainer.Health().Dead, 0)
}

// TestFullProxy: 507 in other words is an error of the server or of a proxy, which is tried again soon.
func TestFullProxy(t *testing.T) {
	r := newRig(t)
	took(r)
	r.set(func(q *seen) *canned { return &canned{status: http.StatusInsufficientStorage, body: "disk full"} })
	r.queue.add(conversation(1), rowsOf(0, 3, 3)...)
	r.start()
	r.troubled(StateRetrying, KindServerError)
	r.set(nil)
	r.drained()
	kit.Equal(t, "dead letters", r.drainer.Health().Dead, 0)
}
