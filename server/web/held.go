package web

import (
	"context"
	"net/http"

	"github.com/ccship/ccship/server/limit"
	"github.com/ccship/ccship/server/web/page"
)

const (
	// heldBytes is how many bytes of pages and images wait in memory for slow readers; heldOfOne, those of one user, and
	// as many of all visitors of that user's links.
	heldBytes = 256 << 20
	heldOfOne = 48 << 20
)

// heldAnswers bounds answers that are in memory until their readers have taken them.
type heldAnswers struct{ bytes *limit.Slots }

// of counts what is written to a user.
func (h *heldAnswers) of(w http.ResponseWriter, user int64) page.Counted {
	return page.Counted{ResponseWriter: w, Hold: func(n int64) (release func(), err error) {
		return h.bytes.Acquire(context.Background(), user, n, 0)
	}}
}
