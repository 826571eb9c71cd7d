package remote

import (
	"net/url"

	"github.com/ccship/ccship/daemon/control"
)

// maxEmpty is how many pages in a row may bring nothing.
const maxEmpty = 1000

// pager follows a listing from page to page. The zero value stands before the first page. It ends a listing that goes
// round in a circle, or brings nothing any more: a broken server would be asked for ever.
type pager struct {
	seen  string // the cursor of an earlier page
	pages int
	empty int // in a row
}

// turn makes of a query that for the next page, which the server names. items is how many the last page had.
func (p *pager) turn(q url.Values, name, cursor string, items int) error {
	p.pages++
	if p.empty++; items > 0 {
		p.empty = 0
	}
	if cursor == p.seen || p.empty > maxEmpty {
		return control.Failed("the server's list has no end", "update ccship-server, or find out who answers in its place")
	}
	if p.pages&(p.pages-1) == 0 { // at each doubling: no circle is longer than what comes until the next one
		p.seen = cursor
	}
	q.Set(name, cursor)
	return nil
}
