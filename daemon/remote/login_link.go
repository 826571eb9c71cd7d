package remote

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"
)

// LoginLink is the address of a page that logs in one browser, once.
type LoginLink struct {
	URL   string    `json:"url"`
	Until time.Time `json:"until"` // when it expires
}

// LoginLink asks for a one-time link to the pages of the key's user. A link outside the client's base URL is an error,
// because a browser will open it.
func (c *Client) LoginLink(ctx context.Context) (LoginLink, error) {
	var link LoginLink
	if err := c.document(ctx, http.MethodPost, "/api/tickets", nil, struct{}{}, &link); err != nil {
		return LoginLink{}, err
	}
	if !strings.HasPrefix(link.URL, strings.TrimSuffix(c.Base.String(), "/")+"/login?ticket=") {
		return LoginLink{}, noReading(errors.New("its one-time link leads elsewhere"))
	}
	return link, nil
}
