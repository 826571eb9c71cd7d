package remote

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/ccship/ccship/transcript/provenance"
)

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
