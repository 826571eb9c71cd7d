package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/protocol"
)

// Digest returns the digests of all generations of an epoch.
func (c *Client) Digest(ctx context.Context, ref Ref) (protocol.Digest, error) {
	var d protocol.Digest
	err := c.get(ctx, ref.path("digest"), ref.query(), &d)
	return d, err
}

// LineHashes returns the SHA-256 of each line from from to before to, newline included, at most 10 000; nil for lines
// that are not stored.
func (c *Client) LineHashes(ctx context.Context, ref Ref, from, to int64) ([]*string, error) {
	q := ref.query()
	q.Set("from", strconv.FormatInt(from, 10))
	q.Set("to", strconv.FormatInt(to, 10))
	var d protocol.Digest
	err := c.get(ctx, ref.path("digest"), q, &d)
	return d.LineHashes, err
}

// Digests fetches the digests of many transcripts at once, in the order of refs; with all, for all epochs. It is nil of
// a transcript that does not exist. An answer that is cut short, as proxies do now and then, is asked for again from
// where it ended.
func (c *Client) Digests(ctx context.Context, refs []Ref, all bool) (list []*protocol.Digest, err error) {
	for tries := 0; len(list) < len(refs); tries++ {
		some, err := c.someDigests(ctx, refs[len(list):], all)
		if list = append(list, some...); len(some) > 0 {
			tries = 0
		}
		var cut *cutShortError
		switch {
		case err != nil && !errors.As(err, &cut):
			return nil, err
		case err != nil && tries == cutTries:
			return nil, c.failed(ctx, cut)
		}
	}
	return list, nil
}

// cutTries is how often digests are asked for again when an answer was cut before the first of them.
const cutTries = 3

func (c *Client) someDigests(ctx context.Context, refs []Ref, all bool) ([]*protocol.Digest, error) {
	var q protocol.DigestRequest
	for _, r := range refs {
		q.Sessions = append(q.Sessions, protocol.DigestOf{
			SessionID: r.Session, User: r.User, Machine: r.Machine, Epoch: r.Epoch})
	}
	if all {
		q.Epochs = "all"
	}
	answer, err := c.do(ctx, http.MethodPost, "/api/digests", nil, q)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	list, err := readDigests(answer.Body, len(refs))
	if ctx := answer.Request.Context(); err != nil && ctx.Err() != nil && errors.As(err, new(*cutShortError)) {
		return nil, c.failed(ctx, err) // nothing came for too long: not worth another wait
	}
	return list, err
}

// cutShortError means that the answer ended too early, or is not a list of digests.
type cutShortError struct{ err error }

func (e *cutShortError) Error() string { return "its answer was cut short: " + e.err.Error() }

// readDigests reads {"digests":[…]} one element at a time: with an error, those before it.
func readDigests(r io.Reader, n int) (list []*protocol.Digest, err error) {
	d := json.NewDecoder(r)
	for _, want := range []json.Token{json.Delim('{'), "digests", json.Delim('[')} {
		got, err := d.Token()
		if err == nil && got != want {
			err = fmt.Errorf("%v where %v should be", got, want)
		}
		if err != nil {
			return nil, &cutShortError{err}
		}
	}
	for range n {
		var x struct {
			protocol.Digest
			Error *struct{ Code, Message string } `json:"error"`
		}
		if err := d.Decode(&x); err != nil {
			return list, &cutShortError{err}
		}
		switch {
		case x.Error == nil:
			list = append(list, &x.Digest)
		case x.Error.Code == "not_found":
			list = append(list, nil)
		default:
			return list, control.Failed(x.Error.Message, "the server's log says more")
		}
	}
	return list, nil
}
