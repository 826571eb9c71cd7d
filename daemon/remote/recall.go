package remote

import (
	"context"
	"strconv"
	"time"
)

// Moment is one entry of a session's timeline.
type Moment struct {
	Line    int64     `json:"line_index"`
	Kind    string    `json:"kind"`
	At      time.Time `json:"at"` // zero: not known
	Text    string    `json:"text"`
	From    string    `json:"from"` // who sent a message, or the channel of a prompt
	Tool    string    `json:"tool"`
	Turn    int64     `json:"turn"`
	Took    int64     `json:"duration_ms"` // without Waited
	Waited  int64     `json:"waited_ms"`
	MayWait bool      `json:"may_include_waiting"` // Took may have more waiting in it
	Running bool      `json:"running"`
	Queued  bool      `json:"queued"`
	Agent   string    `json:"agent"`
	Before  int64     `json:"tokens_before"`
	After   int64     `json:"tokens_after"`
	URL     string    `json:"url"`
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
	for {
		var a struct {
			Session Session  `json:"session"`
			Moments []Moment `json:"moments"`
			Read    int64    `json:"lines_read"`
			Next    *string  `json:"next"`
		}
		if err := c.get(ctx, ref.path("timeline"), q, &a); err != nil {
			return read, lines, err
		}
		read, lines = a.Read, a.Session.Lines
		for i := range a.Moments {
			f(&a.Moments[i])
		}
		if a.Next == nil {
			return read, lines, nil
		}
		q.Set("after", *a.Next)
	}
}
