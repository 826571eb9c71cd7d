package remote

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/ccship/ccship/protocol"
)

// Keeper asks a server about links to sessions.
type Keeper struct{ Client *Client }

// Share makes a link to a session that works for a while: days as 7d, or a Go duration; "": the server's default.
func (k Keeper) Share(ctx context.Context, ref Ref, expires string) (link protocol.ShareLink, err error) {
	body := struct {
		Expires string `json:"expires"`
	}{expires}
	return link, k.Client.document(ctx, http.MethodPost, ref.path("share-links"), ref.query(), body, &link)
}

// ShareLinks lists links that work, to one session or, with "", to all that the key's user may list.
func (k Keeper) ShareLinks(ctx context.Context, session string) ([]protocol.ShareLink, error) {
	q := url.Values{}
	if session != "" {
		q.Set("session", session)
	}
	var a struct {
		Links []protocol.ShareLink `json:"links"`
	}
	err := k.Client.get(ctx, "/api/share-links", q, &a)
	return a.Links, err
}

// EndShareLink ends a link.
func (k Keeper) EndShareLink(ctx context.Context, id int64) error {
	var gone struct{}
	return k.Client.document(ctx, http.MethodDelete, "/api/share-links/"+strconv.FormatInt(id, 10), nil, nil, &gone)
}
