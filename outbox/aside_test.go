package outbox

import (
	"fmt"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestRefusedItemsAreNotBuriedTogether: items that the server refuses wait for something that it accepts after them, and
// hold up no lines. Those that something else refuses wait longer.
func TestRefusedItemsAreNotBuriedTogether(t *testing.T) {
	anonymous := map[string]string{"Ccship-Protocol": ""} // not the server that was there before
	for name, test := range map[string]struct {
		refusal canned
		dead    int
	}{
		"the server's words":      {canned{status: 400, body: `{"error":{"code":"bad","message":"no"}}`}, 12},
		"too large for a server":  {canned{status: 413, body: `{"error":{"code":"large","message":"no"}}`}, 12},
		"a page of a proxy":       {canned{status: 400, body: "<html>", header: anonymous}, 0},
		"a page about large ones": {canned{status: 413, body: "<html>", header: anonymous}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := newShelf(t)
			took(r)
			r.queue.learned.Accepts = Kinds(0).With(Checkpoints)
			r.queue.learned.Config = r.drainer.dest.fingerprint()
			s.set(func(string, []byte) *canned { return &test.refusal })
			p := NewPacker()
			for i := range 12 {
				r.queue.add(conversation(1), p.Checkpoints(itemsOf(fmt.Sprintf(`{"id":%d}`, i))))
			}
			r.start()
			r.until("it is refused", func() bool { return r.drainer.Health().State == StateRefused })
			kit.Equal(t, "dead letters before anything was accepted", len(r.queue.total().Dead), 0)
			lines := int64(0)
			r.until("the lines pass, and what is judged is buried", func() bool {
				if r.queue.waiting() <= 12 {
					r.add(conversation(1), rowsOf(int(lines), int(lines)+1, 1)...)
					lines++
				}
				return lines > 20 && len(r.queue.total().Dead) == test.dead
			})
			h := r.drainer.Health()
			kit.Check(t, h.Accepts.Has(Checkpoints) && h.Unwanted == 0, "health %+v", h)
		})
	}
}
