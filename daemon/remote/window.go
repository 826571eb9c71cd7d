package remote

import (
	"context"
	"strconv"
)

// Window returns up to limit lines of a view that follow line after (-1: from the first).
func Window(ctx context.Context, c *Client, ref Ref, after int64, limit int) ([]Entry, error) {
	q := ref.query()
	q.Set("limit", strconv.Itoa(min(max(limit, 1), maxPage)))
	if after >= 0 {
		q.Set("after", strconv.FormatInt(after, 10))
	}
	var a struct {
		Entries []Entry `json:"entries"`
	}
	err := c.get(ctx, ref.path("entries"), q, &a)
	return a.Entries, err
}
