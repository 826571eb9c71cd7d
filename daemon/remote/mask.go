package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/ccship/ccship/protocol"
)

// Mask has secrets masked in a transcript. What is not stored with the expected bytes stays as it is.
func (c *Client) Mask(ctx context.Context, session string, m *protocol.MaskRequest) (done protocol.Masked, err error) {
	return done, c.document(ctx, http.MethodPost, Ref{Session: session}.path("mask"), nil, m, &done)
}

// Replaced returns the stored bytes of a generation's view that others replaced. Objects come without the white space
// around them.
func (c *Client) Replaced(ctx context.Context, ref Ref) (list []*Entry, err error) {
	q := ref.query()
	q.Set("replaced", "1")
	err = c.entries(ctx, ref, q, func(e *Entry) { list = append(list, e) })
	return list, err
}

// Checkpoint is a checkpoint on the server, as far as its texts go.
type Checkpoint struct {
	ID          string   `json:"id"`
	PortID      string   `json:"port_id"`
	Summary     string   `json:"summary"`
	ActiveFiles []string `json:"active_files"`
}

// Checkpoints returns the checkpoints of a transcript.
func (c *Client) Checkpoints(ctx context.Context, ref Ref) (list []Checkpoint, err error) {
	ref.Epoch, ref.Generation = "", nil
	type found struct {
		Checkpoints []Checkpoint `json:"checkpoints"`
		Next        *string      `json:"next"`
	}
	err = pages(ctx, c, listing{ref.path("checkpoints"), ref.query(), "after"}, func(a *found) (*string, int) {
		list = append(list, a.Checkpoints...)
		return a.Next, len(a.Checkpoints)
	})
	return list, err
}

// DocumentVersion is a version of a linked document.
type DocumentVersion struct {
	client *Client
	ref    Ref

	Path    string `json:"-"` // of the document
	Version int64  `json:"version"`
	Size    int64  `json:"size"`
	SHA256  string `json:"sha256"`
	Stored  bool   `json:"stored"`
}

// DocumentVersions returns every version of every document of a transcript.
func (c *Client) DocumentVersions(ctx context.Context, ref Ref) (all []DocumentVersion, err error) {
	ref.Epoch, ref.Generation = "", nil
	var list struct {
		Documents []struct {
			Path string `json:"path"`
		} `json:"documents"`
	}
	if err := c.get(ctx, ref.path("documents"), ref.query(), &list); err != nil {
		return nil, err
	}
	for _, d := range list.Documents {
		type found struct {
			Versions []DocumentVersion `json:"versions"`
			Next     *json.Number      `json:"next"`
		}
		l := listing{ref.path("documents/" + url.PathEscape(d.Path) + "/versions"), ref.query(), "before"}
		err := pages(ctx, c, l, func(a *found) (*string, int) {
			for _, v := range a.Versions {
				v.client, v.ref, v.Path = c, ref, d.Path
				all = append(all, v)
			}
			return (*string)(a.Next), len(a.Versions)
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Content asks the server for the content of the version.
func (v *DocumentVersion) Content(ctx context.Context) ([]byte, error) {
	c, ref := v.client, v.ref
	q := ref.query()
	q.Set("version", strconv.FormatInt(v.Version, 10))
	answer, err := c.do(ctx, http.MethodGet, ref.path("documents/"+url.PathEscape(v.Path)), q, nil)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(io.LimitReader(answer.Body, v.Size+1))
	if err != nil {
		return nil, fmt.Errorf("read a document from the server: %w", err)
	}
	return content, nil
}
