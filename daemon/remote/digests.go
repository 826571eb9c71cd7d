package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/ccship/ccship/daemon/control"
)

// Digest describes one transcript on the server. The server computes it from the stored bytes for each request.
type Digest struct {
	SessionID   string       `json:"session_id"`
	Machine     string       `json:"machine"`
	Epoch       string       `json:"epoch"`
	Generations []Generation `json:"generations"`
	Epochs      []Epoch      `json:"epochs"`      // newest first; when all were asked for, then no Generations
	LineHashes  []*string    `json:"line_hashes"` // nil: the server does not have that line
}

// Epoch is the generations that one state file of the client has written.
type Epoch struct {
	Epoch       string       `json:"epoch"`
	Generations []Generation `json:"generations"`
}

// Generation is the digest of one view. SHA256 covers each stored line and a newline, and where they stand if not all
// are there: see transcript.Layout.
type Generation struct {
	Generation uint32 `json:"generation"`
	RewoundTo  int64  `json:"rewound_to"`
	Lines      int64  `json:"lines"`    // stored
	EndLine    int64  `json:"end_line"` // of the file
	Missing    int64  `json:"missing"`
	Bytes      int64  `json:"bytes"` // stored, including a newline for each line
	SHA256     string `json:"sha256"`
	EOFNewline bool   `json:"eof_newline"`
	// Masked are the lines in which the server itself replaced secrets by tokens.
	Masked []int64 `json:"masked"`
	// Retired are lines of which the server has only hashes: its policy removed them. Lines and Bytes count them.
	Retired  []Stretch      `json:"retired"`
	Oversize []OversizeLine `json:"oversize"` // of which the server has only this
}

// OversizeLine is a line that was longer than the client's cap.
type OversizeLine struct {
	Line   int64  `json:"line"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
	SHA256 string `json:"sha256"`
}

// Stretch is lines that a server's policy removed.
type Stretch struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	Lines int64 `json:"lines"`
}

// RetiredLines counts the lines of which the server has only hashes.
func (g *Generation) RetiredLines() (n int64) {
	for _, s := range g.Retired {
		n += s.Lines
	}
	return n
}

// IsRetired reports whether the server may have only the hash of a line.
func (g *Generation) IsRetired(line int64) bool {
	return slices.ContainsFunc(g.Retired, func(s Stretch) bool { return s.First <= line && line <= s.Last })
}

// MaskedLines returns the lines in which the server itself replaced secrets by tokens.
func (g *Generation) MaskedLines() map[int64]bool {
	lines := make(map[int64]bool, len(g.Masked))
	for _, line := range g.Masked {
		lines[line] = true
	}
	return lines
}

// Of returns the digest of one generation.
func (d *Digest) Of(generation uint32) (Generation, bool) {
	for _, g := range d.Generations {
		if g.Generation == generation {
			return g, true
		}
	}
	return Generation{}, false
}

// Newest returns the digest of the view that the server shows by default.
func (d *Digest) Newest() (Generation, bool) {
	if len(d.Generations) == 0 {
		return Generation{}, false
	}
	return d.Generations[len(d.Generations)-1], true
}

// Digest returns the digests of all generations of an epoch.
func (c *Client) Digest(ctx context.Context, ref Ref) (Digest, error) {
	var d Digest
	err := c.get(ctx, ref.path("digest"), ref.query(), &d)
	return d, err
}

// LineHashes returns the SHA-256 of each line from from to before to, newline included, at most 10 000; nil for lines
// that are not stored.
func (c *Client) LineHashes(ctx context.Context, ref Ref, from, to int64) ([]*string, error) {
	q := ref.query()
	q.Set("from", strconv.FormatInt(from, 10))
	q.Set("to", strconv.FormatInt(to, 10))
	var d Digest
	err := c.get(ctx, ref.path("digest"), q, &d)
	return d.LineHashes, err
}

// Digests fetches the digests of many transcripts at once, in the order of refs; with all, for all epochs. It is nil of
// a transcript that does not exist. An answer that is cut short, as proxies do now and then, is asked for again from
// where it ended.
func (c *Client) Digests(ctx context.Context, refs []Ref, all bool) (list []*Digest, err error) {
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

func (c *Client) someDigests(ctx context.Context, refs []Ref, all bool) ([]*Digest, error) {
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
func readDigests(r io.Reader, n int) (list []*Digest, err error) {
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
			Digest
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
