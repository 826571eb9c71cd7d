// Package remote asks a server what it has (sessions, files, digests, search, export), and asks it to forget. It is a
// client of the reading API of ccship-server (its /api/openapi.yaml). It uses the daemon's redirect policy and key, but
// works without a daemon.
//
// Its errors are *control.Error: CodeUnreachable, CodeRefusedKey, CodeNoSession for what does not exist or the key may
// not see, and the codes below.
package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
)

// Codes of the errors that only this package has.
const (
	CodeNoReading  = "no_reading"  // a plain server: it accepts conversations and cannot return them
	CodeIncomplete = "incomplete"  // some lines of a file are not stored
	CodeNotAllowed = "not_allowed" // the key's user may see the session, but may not do this
	CodeOtherStore = "other_store" // the answer comes from another database
	CodeUnproven   = "unproven"    // the server does not prove that it knows the key
)

// patience is how long a server may send nothing during an answer: it may have to hash a whole history first.
const patience = 5 * time.Minute

// maxDocument limits an answer that is read as a whole, in bytes.
const maxDocument = 64 << 20

// Client asks one server. Safe for concurrent use; all fields are set before the first call.
type Client struct {
	Base  *url.URL
	Key   func() (string, error) // the key to show, "" none; read anew for each request
	HTTP  *http.Client           // with a redirect policy that keeps the key at its server
	Agent string                 // User-Agent

	store *pin // the database whose answers count; nil: any
}

// New returns a client of the server at a base URL that people call name. Only a ccship-server gives anything back, so
// over plain HTTP it shows the key only to who proves to know it.
func New(base *url.URL, name string, key func() (string, error), agent string) *Client {
	client := protocol.NewProvenClient(outbox.NewClient(1), base, name, protocol.AlwaysKnown)
	return &Client{Base: base, Key: key, HTTP: client, Agent: agent}
}

// Me is the caller's own name where a transcript's user is named. A request for what this machine sent has it:
// an owner sees also what others sent under the same names.
const Me = "@me"

// Ref names a transcript on a server.
type Ref struct {
	Session    string
	User       string  // whose it is; Me: the caller's; "": the caller's, else the only one
	Machine    *string // nil: any, the one heard last
	Epoch      string  // "": the newest
	Generation *int64  // nil: the newest
}

func (r Ref) path(what string) string {
	p := "/api/sessions/" + url.PathEscape(r.Session)
	if what != "" {
		p += "/" + what
	}
	return p
}

func (r Ref) query() url.Values {
	q := url.Values{}
	if r.User != "" {
		q.Set("user", r.User)
	}
	if r.Machine != nil {
		q.Set("machine", *r.Machine)
	}
	if r.Epoch != "" {
		q.Set("epoch", r.Epoch)
	}
	if r.Generation != nil {
		q.Set("generation", fmt.Sprint(*r.Generation))
	}
	return q
}

// get reads a whole document.
func (c *Client) get(ctx context.Context, path string, q url.Values, into any) error {
	return c.document(ctx, http.MethodGet, path, q, nil, into)
}

func (c *Client) document(ctx context.Context, method, path string, q url.Values, body, into any) error {
	answer, err := c.do(ctx, method, path, q, body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxDocument))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return noReading(fmt.Errorf("read answer of %s: %w", path, err))
	}
	return nil
}

// do makes a request; an answer that is not 2xx is an error. The caller closes the body. Reading the body fails when no
// bytes arrive for a while.
func (c *Client) do(ctx context.Context, method, path string, q url.Values, body any) (*http.Response, error) {
	u := c.Base.String() + path
	if len(q) > 0 {
		u += "?" + q.Encode()
	}
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("write request: %w", err)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stall := time.AfterFunc(patience, func() { cancel(fmt.Errorf("nothing came for %s", patience)) })
	end := func() { stall.Stop(); cancel(nil) }
	req, err := c.request(ctx, method, u, text)
	if err != nil {
		end()
		return nil, err
	}
	answer, err := c.HTTP.Do(req)
	if err != nil {
		defer end()
		return nil, c.failed(ctx, err)
	}
	answer.Body = &stream{ReadCloser: answer.Body, stall: stall, end: end}
	if err := c.store.check(answer); err != nil {
		defer answer.Body.Close()
		return nil, err
	}
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		defer answer.Body.Close()
		return nil, refusal(answer)
	}
	return answer, nil
}

func (c *Client) request(ctx context.Context, method, u string, text []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, u, bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("ask server: %w", err)
	}
	key, err := c.Key()
	if err != nil {
		return nil, fmt.Errorf("read API key: %w", err)
	}
	if key != "" {
		req.Header.Set("X-API-Key", key)
	}
	if len(text) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", c.Agent)
	return req, nil
}

// failed explains why there is no answer.
func (c *Client) failed(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, context.Canceled) {
			return cause
		}
		return unreachable(cause)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the address, which the caller knows
	}
	if e, ok := errors.AsType[*protocol.UnprovenError](err); ok {
		return unproven(e)
	}
	return unreachable(err)
}

// unproven is the error for a server that does not prove to know the key.
func unproven(e *protocol.UnprovenError) error {
	switch {
	case e.UnknownKey:
		return refusedKey(e.Status)
	case e.Status == http.StatusNotFound, e.Status == http.StatusMethodNotAllowed:
		return noReading(e)
	}
	return control.NewError(CodeUnproven, e.Error(), e.Hint())
}

func refusedKey(status int) error {
	return control.NewError(control.CodeRefusedKey, fmt.Sprintf("the server rejects the API key (%d)", status),
		"`ccship-server key create --name NAME` on the server makes one; `ccship setup` asks for it")
}

// stream is an answer that is being read.
type stream struct {
	io.ReadCloser
	stall *time.Timer
	end   func()
	once  sync.Once
}

func (b *stream) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.stall.Reset(patience)
	}
	if err != nil && !errors.Is(err, io.EOF) { // a truncated answer is not the end of a file
		err = unreachable(err)
	}
	return n, err
}

func (b *stream) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(b.end)
	return err
}

// refusal turns an answer other than 2xx into an error.
func refusal(answer *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10)) // an error leaves a shorter text
	var said struct {
		Error struct{ Code, Message string }
	}
	known := json.Unmarshal(text, &said) == nil && said.Error.Code != ""
	words := fmt.Sprintf("the server answered %s", answer.Status)
	if known {
		words = said.Error.Message
	}
	switch code := answer.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden && !known:
		return refusedKey(code)
	case code == http.StatusForbidden:
		return control.NewError(CodeNotAllowed, words,
			"use a key of the user whose session it is, or of an owner")
	case code == http.StatusNotFound && known && said.Error.Code == "not_found":
		return control.NoSession("the server has no such session", "`ccship list` lists them")
	case code >= 300 && code < 400: // a redirect that the client's policy does not follow
		return control.Failed("the server redirects to "+outbox.RedirectedTo(answer.Header)+", and the key is not sent there",
			"set server_url to the server's new address")
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed:
		return noReading(errors.New(words))
	case code == http.StatusBadRequest && said.Error.Code == "bad_request":
		return control.Usage(strings.Join(strings.Fields(words), " "), "give a value that it takes; --help has examples")
	case code == http.StatusConflict && said.Error.Code == "incomplete":
		return control.NewError(CodeIncomplete, words, "--partial leaves the lines that are not stored blank")
	case code >= 500, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		return unreachable(errors.New(words))
	}
	return control.Failed(strings.Join(strings.Fields(words), " "), "the server's log says more")
}

func noReading(err error) error {
	return control.NewError(CodeNoReading, "the server gives nothing back: "+err.Error(),
		"that needs ccship-server; check server_url")
}

func unreachable(err error) error {
	return control.Unreachable("the server cannot be reached: "+err.Error(),
		"start the server, or check server_url in `ccship config`; nothing is lost meanwhile")
}

// Is says whether an error of this package has a code.
func Is(err error, code string) bool {
	var e *control.Error
	return errors.As(err, &e) && e.Code == code
}

// Of returns a client that takes answers of one database only: several may answer in turn at one address, and what one
// has says nothing about the other. "": the one that answers first. Servers that never name their database are not
// distinguished apart; an answer without a name among answers with one is refused.
func (c *Client) Of(store string) *Client {
	one := *c
	one.store = &pin{store: store}
	return &one
}

// pin is the database that a client takes answers of.
type pin struct {
	mu      sync.Mutex
	store   string // guarded by mu; "" before the first answer that names one
	named   bool   // guarded by mu; an answer named its database
	unnamed bool   // guarded by mu; an answer to a valid key did not
}

// check refuses an answer of another database.
func (p *pin) check(answer *http.Response) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	store := answer.Header.Get(protocol.HeaderStore)
	if store == "" {
		if answer.StatusCode > 299 { // of a proxy, or to a key that is not valid
			return nil
		}
		if p.unnamed = true; p.named {
			return otherStore(p.store, "one without a name")
		}
		return nil
	}
	if p.store == "" {
		p.store = store
	}
	if store != p.store {
		return otherStore(p.store, store)
	}
	if p.named = true; p.unnamed {
		return otherStore(p.store, "one without a name")
	}
	return nil
}

func otherStore(asked, answered string) error {
	return control.NewError(CodeOtherStore, "two databases answer in turn: "+asked+" and "+answered,
		"let one database answer at this address; check the load balancer and server_url")
}

// maxEmpty is how many pages in a row may bring nothing.
const maxEmpty = 1000

// listing is a list that comes in pages.
type listing struct {
	path   string
	query  url.Values
	cursor string // the parameter that names the next page
}

// pages calls f with each page of a list. f returns the cursor of the next page, nil to end, and how many items this
// one had. A listing that goes round in a circle, or brings nothing any more, is an error: a broken server would be
// asked for ever.
func pages[P any](ctx context.Context, c *Client, l listing, f func(*P) (next *string, items int)) error {
	seen, empty := "", 0 // the cursor of an earlier page, and pages in a row without items
	for n := 1; ; n++ {
		var page P
		if err := c.get(ctx, l.path, l.query, &page); err != nil {
			return err
		}
		next, items := f(&page)
		if next == nil {
			return nil
		}
		if empty++; items > 0 {
			empty = 0
		}
		if *next == seen || empty > maxEmpty {
			return control.Failed("the server's list has no end", "update ccship-server, or find out who answers in its place")
		}
		if n&(n-1) == 0 { // at each doubling: no circle is longer than what comes until the next one
			seen = *next
		}
		l.query.Set(l.cursor, *next)
	}
}
