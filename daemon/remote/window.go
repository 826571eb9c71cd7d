package remote

import (
	"context"
	"net/url"
	"strconv"
)

// Window returns up to limit lines of a view that follow line after (-1: from the first).
func Window(ctx context.Context, c *Client, ref Ref, after int64, limit int) ([]Entry, error) {
	var a struct {
		Entries []Entry `json:"entries"`
	}
	err := c.get(ctx, ref.path("entries"), linesAfter(ref, after, limit), &a)
	return a.Entries, err
}

// linesAfter asks for up to limit lines of a view that follow line after.
func linesAfter(ref Ref, after int64, limit int) url.Values {
	q := ref.query()
	q.Set("limit", strconv.Itoa(min(max(limit, 1), maxPage)))
	q.Set("most", strconv.Itoa(mostOfLine))
	if after >= 0 {
		q.Set("after", strconv.FormatInt(after, 10))
	}
	return q
}
