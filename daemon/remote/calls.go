package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/transcript/provenance"
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

// LinkRequests lists the requests that wait for the daemon of a machine, oldest first. The daemon answers each with a
// document event that carries the request's id.
func (c *Client) LinkRequests(ctx context.Context, machine string) ([]protocol.LinkRequest, error) {
	var a struct {
		LinkRequests []protocol.LinkRequest `json:"link_requests"`
	}
	err := c.get(ctx, "/api/link-requests", url.Values{"machine": {machine}}, &a)
	return a.LinkRequests, err
}

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

// UsageQuery sums tokens. By names the columns that rows differ in: "day", "project", "model", "machine", "session".
type UsageQuery struct {
	By           []string
	Since, Until time.Time     // Until is exclusive; the zero time is no limit
	Zone         time.Duration // of days: how far east of UTC, in whole minutes
	User         string        // only this user's; Me: the caller's
}

// UsageSums is the answer to a UsageQuery.
type UsageSums struct {
	Rows   []UsageRow `json:"rows"`
	Prices string     `json:"prices_as_of"` // the day that the server's price list is of
}

// UsageRow is one sum, each answer counted once. Columns that By does not name are empty.
type UsageRow struct {
	Day         string `json:"day"`
	ProjectHash string `json:"project_hash"`
	Project     string `json:"project"`
	Model       string `json:"model"`
	Machine     string `json:"machine"`
	Session     string `json:"session_id"` // of the transcript, which may be an agent's
	protocol.Tokens
	Cost     *float64 `json:"cost_usd"`        // nil: no price is known for any of them
	Unpriced int64    `json:"unpriced_tokens"` // not in Cost
}

// Usage sums the tokens of what the server has derived so far.
func (c *Client) Usage(ctx context.Context, q UsageQuery) (UsageSums, error) {
	v := url.Values{"zone": {time.Unix(0, 0).In(time.FixedZone("", int(q.Zone.Seconds()))).Format("Z07:00")}}
	if len(q.By) > 0 {
		v.Set("by", strings.Join(q.By, ","))
	}
	if q.User != "" {
		v.Set("user", q.User)
	}
	for name, t := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !t.IsZero() {
			v.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	var a UsageSums
	err := c.get(ctx, "/api/usage", v, &a)
	return a, err
}

// Why asks which sessions wrote lines of commits, with each line if lines is set. The answers are in the order of the
// commits.
func (c *Client) Why(ctx context.Context, commits []provenance.Commit, lines bool) ([]provenance.Answer, error) {
	var answer struct {
		Commits []provenance.Answer `json:"commits"`
	}
	q := url.Values{}
	if lines {
		q.Set("lines", "1")
	}
	body := map[string]any{"commits": commits}
	if err := c.document(ctx, http.MethodPost, "/api/why", q, body, &answer); err != nil {
		return nil, err
	}
	if len(answer.Commits) != len(commits) {
		return nil, noReading(errors.New("the server answered about other commits"))
	}
	return answer.Commits, nil
}
