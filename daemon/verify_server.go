package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// errNoStream is the server saying that it has nothing under a name.
var errNoStream = errors.New("the server has no such session")

// digest is the server's account of one stream: the answer of GET /api/sessions/{id}/digest.
type digest struct {
	Generations []generationDigest `json:"generations"`
	LineHashes  []*string          `json:"line_hashes"` // nil: the server does not have that line
}

type generationDigest struct {
	Generation uint32 `json:"generation"`
	RewoundTo  int64  `json:"rewound_to"`
	Lines      int64  `json:"lines"`
	EndLine    int64  `json:"end_line"`
	Bytes      int64  `json:"bytes"`
	SHA256     string `json:"sha256"`
	EOFNewline bool   `json:"eof_newline"`
}

// of returns the account of one generation.
func (d *digest) of(generation uint32) (generationDigest, bool) {
	for _, g := range d.Generations {
		if g.Generation == generation {
			return g, true
		}
	}
	return generationDigest{}, false
}

// reader asks a server what it has.
type reader struct {
	base   *url.URL
	key    func() (string, error)
	client *http.Client
	origin url.Values // machine and epoch
	agent  string
}

// digest fetches the account of a stream; with from < to also the hashes of those lines of a generation.
func (r *reader) digest(ctx context.Context, session string, generation uint32, from, to int64) (*digest, error) {
	q := url.Values{}
	for k, v := range r.origin {
		q[k] = v
	}
	if from < to {
		q.Set("generation", strconv.FormatUint(uint64(generation), 10))
		q.Set("from", strconv.FormatInt(from, 10))
		q.Set("to", strconv.FormatInt(to, 10))
	}
	u := r.base.JoinPath("api", "sessions").String() + "/" + url.PathEscape(session) + "/digest?" + q.Encode()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, fmt.Errorf("ask for digest: %w", err)
	}
	key, err := r.key()
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-API-Key", key)
	req.Header.Set("User-Agent", r.agent)
	res, err := r.client.Do(req)
	if err != nil {
		return nil, unreachable(err)
	}
	defer res.Body.Close()
	const most = 16 << 20
	body, err := io.ReadAll(io.LimitReader(res.Body, most))
	if err != nil {
		return nil, unreachable(err)
	}
	return parseDigest(res.StatusCode, body)
}

func parseDigest(status int, body []byte) (*digest, error) {
	switch status {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, errNoStream
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, &control.Error{Code: control.CodeRefusedKey, Message: fmt.Sprintf("the server refused the key (%d)", status), Hint: "put a key that this server knows into the API key file"}
	default:
		err := fmt.Errorf("ask for digest: the server answered %d", status)
		if status >= http.StatusInternalServerError {
			return nil, unreachable(err)
		}
		return nil, err
	}
	var d digest
	if err := json.Unmarshal(body, &d); err != nil {
		return nil, fmt.Errorf("read digest: %w", err)
	}
	return &d, nil
}

// unreachable is what verify answers when the server cannot be asked.
func unreachable(err error) error {
	return &control.Error{
		Code: control.CodeUnreachable, Message: "the server cannot be reached: " + err.Error(), Hint: "`ccship status` says what is wrong",
	}
}
