package remote

import (
	"context"
	"net/url"

	"github.com/ccship/ccship/daemon/control"
)

// maxEmpty is how many pages in a row may bring nothing.
const maxEmpty = 1000

// listing is a list that comes in pages.
type listing struct {
	path   string
	query  url.Values
	cursor string // the parameter that names the next page
}

// pages calls f with each page of a list. f returns the cursor of the next page, nil to end, and how many items this
// one had. A listing that goes round in a circle, or brings nothing any more, is an error: a broken server would be
// asked for ever.
func pages[P any](ctx context.Context, c *Client, l listing, f func(*P) (next *string, items int)) error {
	seen, empty := "", 0 // the cursor of an earlier page, and pages in a row without items
	for n := 1; ; n++ {
		var page P
		if err := c.get(ctx, l.path, l.query, &page); err != nil {
			return err
		}
		next, items := f(&page)
		if next == nil {
			return nil
		}
		if empty++; items > 0 {
			empty = 0
		}
		if *next == seen || empty > maxEmpty {
			return control.Failed("the server's list has no end", "update ccship-server, or find out who answers in its place")
		}
		if n&(n-1) == 0 { // at each doubling: no circle is longer than what comes until the next one
			seen = *next
		}
		l.query.Set(l.cursor, *next)
	}
}
