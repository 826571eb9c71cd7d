package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/ccship/ccship/protocol"
)

// Ledger is the number of writes of one machine that a server has accepted.
type Ledger struct {
	Store   string `json:"store"` // id of the database
	Count   int64  `json:"count"`
	Token   string `json:"token"`       // of the last write; "": the server draws none
	Since   string `json:"since_token"` // of the write with the count asked for; "": not known any more
	Writer  string `json:"writer"`      // incarnation of the last write
	Changed []struct {
		SessionID string `json:"session_id"`
	} `json:"changed"` // transcripts that changed after the requested count, at most MaxChanged
}

// MaxChanged is the largest number of changed transcripts in one answer.
const MaxChanged = 1000

// Ledger returns the ledger of a machine, with the transcripts that changed after count since.
func (c *Client) Ledger(ctx context.Context, machine string, since int64) (Ledger, error) {
	q := url.Values{"machine": {machine}, "since": {fmt.Sprint(since)}, "limit": {fmt.Sprint(MaxChanged)}}
	var l Ledger
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
