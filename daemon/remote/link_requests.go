package remote

import (
	"context"
	"net/url"

	"github.com/ccship/ccship/protocol"
)

// LinkRequests lists the requests that wait for the daemon of a machine, oldest first. The daemon answers each with a
// document event that carries the request's id.
func (c *Client) LinkRequests(ctx context.Context, machine string) ([]protocol.LinkRequest, error) {
	var a struct {
		LinkRequests []protocol.LinkRequest `json:"link_requests"`
	}
	err := c.get(ctx, "/api/link-requests", url.Values{"machine": {machine}}, &a)
	return a.LinkRequests, err
}
