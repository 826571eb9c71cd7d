package remote

import (
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/ccship/ccship/protocol"
)

// File is a transcript as the server returns it. The caller closes it.
type File struct {
	io.ReadCloser
	Generation, Lines int64
	Missing           int64 // lines that are blank because they are not stored
}

// Raw returns a transcript byte for byte. If some lines are not stored, it returns a CodeIncomplete error, or with
// partial, blank lines in their place.
func (c *Client) Raw(ctx context.Context, ref Ref, partial bool) (*File, error) {
	q := ref.query()
	if partial {
		q.Set("partial", "1")
	}
	answer, err := c.do(ctx, http.MethodGet, ref.path("raw"), q, nil)
	if err != nil {
		return nil, err
	}
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(answer.Header.Get(name), 10, 64) // without the header, none are missing
		return n
	}
	return &File{
		ReadCloser: answer.Body, Generation: number(protocol.HeaderGeneration), Lines: number(protocol.HeaderLines),
		Missing: number(protocol.HeaderMissing),
	}, nil
}

// Export returns a session in a format that the server knows: jsonl, json, md or html. The caller closes it.
func (c *Client) Export(ctx context.Context, ref Ref, format string) (io.ReadCloser, error) {
	ref.Generation = nil
	q := ref.query()
	q.Set("format", format)
	answer, err := c.do(ctx, http.MethodGet, ref.path("export"), q, nil)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}
