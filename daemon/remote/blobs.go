package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Blob is a complete file next to a transcript that the server stores.
type Blob struct {
	SHA256 string `json:"sha256"` // lower-case hex
	Name   string `json:"name"`   // path below the session's folder, slashes
	Size   int64  `json:"size"`   // bytes
}

// Blobs lists the files next to a session. A name may occur several times, each time with other content.
func (c *Client) Blobs(ctx context.Context, ref Ref) (list []Blob, err error) {
	ref.Epoch, ref.Generation = "", nil
	err = c.get(ctx, ref.path("blobs"), ref.query(), &list)
	return list, err
}

// Blob returns the content of a complete file, at most limit bytes of it.
func (c *Client) Blob(ctx context.Context, sha256 string, limit int64) ([]byte, error) {
	answer, err := c.do(ctx, http.MethodGet, "/api/blobs/"+url.PathEscape(sha256), nil, nil)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(io.LimitReader(answer.Body, limit))
	if err != nil {
		return nil, fmt.Errorf("read a file from the server: %w", err)
	}
	return content, nil
}
