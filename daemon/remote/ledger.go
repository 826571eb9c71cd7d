package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/ccship/ccship/protocol"
)

// Ledger returns the ledger of a machine, with the transcripts that changed after count since.
func (c *Client) Ledger(ctx context.Context, machine string, since int64) (protocol.WriteLedger, error) {
	q := url.Values{"machine": {machine}, "since": {fmt.Sprint(since)}, "limit": {fmt.Sprint(protocol.MaxChanged)}}
	var l protocol.WriteLedger
	err := c.get(ctx, "/api/ledger", q, &l)
	return l, err
}

// Copy copies lines of a transcript on the server.
func (c *Client) Copy(ctx context.Context, session string, q protocol.CopyRequest) error {
	var done struct {
		Success bool `json:"success"`
	}
	err := c.document(ctx, http.MethodPost, Ref{Session: session}.path("copy"), nil, q, &done)
	if err == nil && !done.Success {
		err = noReading(errors.New("another program answers in its place"))
	}
	return err
}
