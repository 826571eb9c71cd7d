package remote

import (
	"context"
	"net/url"
)

// Wish is what somebody asked for in the viewer: that a document is linked to a session, or not any more.
type Wish struct {
	ID        string `json:"id"`
	SessionID string `json:"session_id"`
	Path      string `json:"path"` // as it was typed
	Link      bool   `json:"link"`
}

// Wishes answers those that wait for a machine's daemon. Each is answered by an event that names it.
func (c *Client) Wishes(ctx context.Context, machine string) ([]Wish, error) {
	var a struct {
		Wishes []Wish `json:"wishes"`
	}
	err := c.get(ctx, "/api/wishes", url.Values{"machine": {machine}}, &a)
	return a.Wishes, err
}
