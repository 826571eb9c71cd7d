package remote

import (
	"context"
	"net/url"
)

// LinkRequest is a request from the viewer to link a document to a session, or to unlink it.
type LinkRequest struct {
	ID        string `json:"id"`
	SessionID string `json:"session_id"`
	Path      string `json:"path"` // as the person typed it
	Link      bool   `json:"link"` // false: unlink
}

// LinkRequests lists the requests that wait for the daemon of a machine, oldest first. The daemon answers each with a
// document event that carries the request's id.
func (c *Client) LinkRequests(ctx context.Context, machine string) ([]LinkRequest, error) {
	var a struct {
		LinkRequests []LinkRequest `json:"link_requests"`
	}
	err := c.get(ctx, "/api/link-requests", url.Values{"machine": {machine}}, &a)
	return a.LinkRequests, err
}
