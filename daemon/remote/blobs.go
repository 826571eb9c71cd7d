package remote

import "context"

// Blob is a file beside a transcript that the server has whole.
type Blob struct {
	SHA256 string `json:"sha256"` // lower-case hex
	Name   string `json:"name"`   // path below the session's folder, slashes
	Size   int64  `json:"size"`   // bytes
}

// Blobs lists the files beside a session. A name may come more than once, with other content each time.
func (c *Client) Blobs(ctx context.Context, ref Ref) (list []Blob, err error) {
	ref.Epoch, ref.Generation = "", nil
	err = c.get(ctx, ref.path("blobs"), ref.query(), &list)
	return list, err
}
