package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/ccship/ccship/daemon/control"
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

// Indexing returns how many transcripts a server stores, and how many of them have lines that its lists and its search
// do not show yet. Both counts are of all users.
func Indexing(ctx context.Context, c *Client) (left, all int64, err error) {
	answer, err := c.do(ctx, http.MethodGet, "/metrics", nil, nil)
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	left = -1
	for lines := bufio.NewScanner(io.LimitReader(answer.Body, maxDocument)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
		case name == "ccship_server_derive_lag_streams":
			left = int64(n)
		case name == "ccship_server_store_streams":
			all = int64(n)
		}
	}
	if left < 0 {
		return 0, 0, noReading(io.ErrUnexpectedEOF)
	}
	return left, max(all, left), nil
}
