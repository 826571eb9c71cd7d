package remote

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/ccship/ccship/protocol"
)

// Share makes a link to a session that works for a while: days as 7d, or a Go duration; "": the server's default.
func Share(ctx context.Context, c *Client, ref Ref, expires string) (link protocol.ShareLink, err error) {
	body := struct {
		Expires string `json:"expires"`
	}{expires}
	return link, c.document(ctx, http.MethodPost, ref.path("share-links"), ref.query(), body, &link)
}

// ShareLinks lists links that work, to one session or, with "", to all that the key's user may list.
func ShareLinks(ctx context.Context, c *Client, session string) ([]protocol.ShareLink, error) {
	q := url.Values{}
	if session != "" {
		q.Set("session", session)
	}
	var a struct {
		Links []protocol.ShareLink `json:"links"`
	}
	err := c.get(ctx, "/api/share-links", q, &a)
	return a.Links, err
}

// EndShareLink ends a link.
func EndShareLink(ctx context.Context, c *Client, id int64) error {
	var gone struct{}
	return c.document(ctx, http.MethodDelete, "/api/share-links/"+strconv.FormatInt(id, 10), nil, nil, &gone)
}
