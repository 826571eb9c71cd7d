package sqlstore

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ccship/ccship/server"
)

// parseAfter reads a page's After: "<id>", or "<last active>-<id>" of a recent listing. Without one, the page starts at
// the beginning.
func parseAfter(p server.Page) (last, id int64, err error) {
	last = int64(1) << 62
	if p.After == "" {
		return last, 0, nil
	}
	a, b, ok := strings.Cut(p.After, "-")
	if !ok {
		a, b = "0", p.After
	}
	last, errA := strconv.ParseInt(a, 10, 64)
	id, errB := strconv.ParseInt(b, 10, 64)
	if ok != p.Recent || errA != nil || errB != nil {
		return 0, 0, server.ErrBadPage
	}
	return last, id, nil
}

// PageAfter returns the After of the page that follows the one ending with last.
func PageAfter(p server.Page, last *server.Session) string {
	if p.Longest {
		return ""
	}
	if p.Recent {
		return fmt.Sprintf("%d-%d", last.Active.UnixMicro(), last.ID)
	}
	return strconv.FormatInt(last.ID, 10)
}
