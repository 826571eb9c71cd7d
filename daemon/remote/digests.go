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
)

// Digest is the server's account of one transcript, computed from the stored bytes when it was asked for.
type Digest struct {
	SessionID   string       `json:"session_id"`
	Machine     string       `json:"machine"`
	Epoch       string       `json:"epoch"`
	Generations []Generation `json:"generations"`
	Epochs      []Epoch      `json:"epochs"`      // newest first; when all were asked for, then no Generations
	LineHashes  []*string    `json:"line_hashes"` // nil: the server does not have that line
}

// Epoch is the generations of one of the client's state files.
type Epoch struct {
	Epoch       string       `json:"epoch"`
	Generations []Generation `json:"generations"`
}

// Generation is the account of one view. SHA256 is over each stored line and a newline.
type Generation struct {
	Generation uint32 `json:"generation"`
	RewoundTo  int64  `json:"rewound_to"`
	Lines      int64  `json:"lines"`    // stored
	EndLine    int64  `json:"end_line"` // of the file
	Missing    int64  `json:"missing"`
	Bytes      int64  `json:"bytes"` // stored, a newline counted for each line
	SHA256     string `json:"sha256"`
	EOFNewline bool   `json:"eof_newline"`
	Oversize   []struct {
		Line int64 `json:"line"`
	} `json:"oversize"`
}

// Of returns the account of one generation.
func (d *Digest) Of(generation uint32) (Generation, bool) {
	for _, g := range d.Generations {
		if g.Generation == generation {
			return g, true
		}
	}
	return Generation{}, false
}

// Newest returns the account of what the server shows by default.
func (d *Digest) Newest() (Generation, bool) {
	if len(d.Generations) == 0 {
		return Generation{}, false
	}
	return d.Generations[len(d.Generations)-1], true
}

// Digest is the account of all generations of an epoch.
func (c *Client) Digest(ctx context.Context, ref Ref) (Digest, error) {
	var d Digest
	err := c.get(ctx, ref.path("digest"), ref.query(), &d)
	return d, err
}

// LineHashes are sha256 of each of the lines from to before to, at most 10 000, and its newline; nil where nothing is
// stored.
func (c *Client) LineHashes(ctx context.Context, ref Ref, from, to int64) ([]*string, error) {
	q := ref.query()
	q.Set("from", strconv.FormatInt(from, 10))
	q.Set("to", strconv.FormatInt(to, 10))
	var d Digest
	err := c.get(ctx, ref.path("digest"), q, &d)
	return d.LineHashes, err
}

// MaxDigests is how many transcripts one Digests may ask for.
const MaxDigests = 1000

// Digests asks for the accounts of many transcripts at once and calls f for each, in order, as they come; all asks
// for all epochs. f gets an error of CodeNoSession for one that is not there. An error of f ends it. From a server
// that does not know the request they are asked for one by one.
func (c *Client) Digests(ctx context.Context, refs []Ref, all bool, f func(i int, d Digest, err error) error) error {
	if len(refs) == 0 {
		return nil
	}
	type one struct {
		SessionID string  `json:"session_id"`
		User      string  `json:"user,omitempty"`
		Machine   *string `json:"machine,omitempty"`
		Epoch     string  `json:"epoch,omitempty"`
	}
	q := struct {
		Sessions []one  `json:"sessions"`
		Epochs   string `json:"epochs,omitempty"`
	}{}
	for _, r := range refs {
		q.Sessions = append(q.Sessions, one{r.Session, r.User, r.Machine, r.Epoch})
	}
	if all {
		q.Epochs = "all"
	}
	answer, err := c.do(ctx, http.MethodPost, "/api/digests", nil, q)
	if Is(err, CodeNoReading) {
		return c.digestsAlone(ctx, refs, all, f)
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if err := readDigests(answer.Body, len(refs), f); err != nil {
		var cut *cutShortError
		if errors.As(err, &cut) {
			return c.failed(answer.Request.Context(), cut)
		}
		return err
	}
	return nil
}

func (c *Client) digestsAlone(ctx context.Context, refs []Ref, all bool, f func(int, Digest, error) error) error {
	for i, r := range refs {
		q := r.query()
		if all {
			q.Set("epochs", "all")
		}
		var d Digest
		err := c.get(ctx, r.path("digest"), q, &d)
		switch {
		case Is(err, CodeNoReading): // an older server's word for it
			err = noSession()
		case err != nil && !Is(err, control.CodeNoSession):
			return err
		}
		if err := f(i, d, err); err != nil {
			return err
		}
	}
	return nil
}

// cutShortError is an answer that ended too early, or is no list of digests.
type cutShortError struct{ err error }

func (e *cutShortError) Error() string { return "its answer was cut short: " + e.err.Error() }

// readDigests reads {"digests":[…]} one element after the other.
func readDigests(r io.Reader, n int, f func(int, Digest, error) error) error {
	d := json.NewDecoder(r)
	for _, want := range []json.Token{json.Delim('{'), "digests", json.Delim('[')} {
		got, err := d.Token()
		if err == nil && got != want {
			err = fmt.Errorf("%v where %v should be", got, want)
		}
		if err != nil {
			return &cutShortError{err}
		}
	}
	for i := range n {
		var x struct {
			Digest
			Error *struct{ Code, Message string } `json:"error"`
		}
		if err := d.Decode(&x); err != nil {
			return &cutShortError{err}
		}
		var err error
		switch {
		case x.Error == nil:
		case x.Error.Code == "not_found":
			err = noSession()
		default:
			err = control.Failed(x.Error.Message, "the server's log says more")
		}
		if err := f(i, x.Digest, err); err != nil {
			return err
		}
	}
	return nil
}
