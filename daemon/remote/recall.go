package remote

import (
	"context"
	"strconv"

	"github.com/ccship/ccship/transcript/session"
)

// Moment is one entry of a session's timeline.
type Moment struct {
	Line int64 `json:"line_index"`
	session.Moment
	URL string `json:"url"`
}

// Timeline calls f for what happened in a session, in the order of its lines. kinds is a list with commas; "" is all.
// read is how many of lines the server has looked at.
func Timeline(ctx context.Context, c *Client, ref Ref, kinds string,
	f func(*Moment)) (read, lines int64, err error) {
	q := ref.query()
	q.Set("limit", strconv.Itoa(maxPage))
	if kinds != "" {
		q.Set("kind", kinds)
	}
	type found struct {
		Session Session  `json:"session"`
		Moments []Moment `json:"moments"`
		Read    int64    `json:"lines_read"`
		Next    *string  `json:"next"`
	}
	err = pages(ctx, c, listing{ref.path("timeline"), q, "after"}, func(a *found) (*string, int) {
		read, lines = a.Read, a.Session.Lines
		for i := range a.Moments {
			f(&a.Moments[i])
		}
		return a.Next, len(a.Moments)
	})
	return read, lines, err
}
