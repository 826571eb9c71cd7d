package protocol

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ccship/ccship/internal/sys"
)

// A client and a server prove to each other that they know the same API key, without showing it. The client sends a
// nonce and its HMAC under the key's hash. The server, which stores the hash, answers with an HMAC of the nonce and of
// its store's id. Neither HMAC is valid for another nonce. Keys are random, so they cannot be guessed. A man in the
// middle can relay both; only TLS prevents that.

// KeyProofPath is where a server proves to know a key, below its base path. The query has key, nonce and proof.
const KeyProofPath = "/api/proof"

// KeyProof is a server's answer at KeyProofPath.
type KeyProof struct {
	Store string `json:"store"` // id of its store
	Proof string `json:"proof"` // see ServerProof
}

// CodeUnknownKey is the error code of a server's refusal (401): no key of its fits the proof. A server that is older
// than the proof refuses the question with another code.
const CodeUnknownKey = "unknown_key"

// KeyID names a key in public. It is derived from the key's hash, so that a server can find the key.
func KeyID(hash [32]byte) string { return keySum(hash, "ccship key id")[:32] }

// ClientProof returns the proof that a client knows a key.
func ClientProof(hash [32]byte, nonce string) string { return keySum(hash, "ccship client", nonce) }

// ServerProof returns the proof that a server with a store knows a key.
func ServerProof(hash [32]byte, nonce, store string) string {
	return keySum(hash, "ccship server", nonce, store)
}

// EqualProofs compares two proofs.
func EqualProofs(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }

var nonceForm = regexp.MustCompile(`^[0-9A-Z]{26}$`)

// ValidNonce reports whether a nonce has the form of crypto/rand.Text.
func ValidNonce(nonce string) bool { return nonceForm.MatchString(nonce) }

func keySum(hash [32]byte, parts ...string) string {
	h := hmac.New(sha256.New, hash[:])
	for _, p := range parts {
		_, _ = h.Write([]byte(p + "\n")) // never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ProvenServers is a file with the addresses at which a server with the proof was seen. A server that answers there
// later must prove itself, whatever it claims to be. Processes may use the file at the same time: lines are only added.
type ProvenServers struct {
	Path string
}

// Has reports whether a server with the proof was seen at an address. A file that cannot be read may name it.
func (m ProvenServers) Has(server string) bool {
	text, err := sys.ReadOwn(m.Path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return server != "" && slices.Contains(strings.Split(string(text), "\n"), server)
}

// Add notes an address. The folder must exist.
func (m ProvenServers) Add(server string) error {
	if m.Has(server) {
		return nil
	}
	f, err := sys.OpenOwn(m.Path, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return fmt.Errorf("note the server: %w", err)
	}
	_, err = f.WriteString(server + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("note the server: %w", err)
	}
	return nil
}

// keyHeader is the header with the key.
const keyHeader = "X-API-Key"

// proofPatience limits how long a server may take for its proof.
const proofPatience = 20 * time.Second

// UnprovenError means that a request was not sent, because the server at the address did not prove that it knows the
// key.
type UnprovenError struct {
	Server string // its address
	Why    string
	Status int // of its answer; 0: it was none of HTTP
	// UnknownKey says that it is a server with the proof, which has no such key.
	UnknownKey bool
}

func (e *UnprovenError) Error() string {
	if e.UnknownKey {
		return "the server at " + e.Server + " rejects the API key (401 Unauthorized)"
	}
	return "the server at " + e.Server + " does not prove that it knows the API key (" + e.Why +
		"), so it gets neither the key nor lines"
}

// Trouble returns what status calls the failure, and Hint.
func (e *UnprovenError) Trouble() (kind, hint string) {
	if e.UnknownKey {
		return "refused_key", e.Hint()
	}
	return "unproven", e.Hint()
}

// Hint says what to do about it.
func (e *UnprovenError) Hint() string {
	if e.UnknownKey {
		return "`ccship-server key create --name NAME` on the server makes one; `ccship setup` asks for it"
	}
	if e.Status == http.StatusUnauthorized {
		return "update ccship-server if it is older than this ccship; else find out who listens there"
	}
	return "find out who listens there (a tunnel that has ended, another user's program); if you put a server of " +
		"another kind there yourself, set protocol = \"plain\""
}

// provenTransport sends requests to one server. Over plain HTTP it shows the key only on connections whose other end
// has proven that it knows the key: each connection begins with the proof. Requests without a key, and all requests
// over TLS, which authenticates the server by itself, go through Plain. Safe for concurrent use.
type provenTransport struct {
	Base  *url.URL        // of the server
	Name  string          // of the server, for people; "": its base URL
	Plain *http.Transport // shared with others
	Known func() bool     // whether the server must prove to know the key

	mu     sync.Mutex
	key    string          // that proven is for; guarded by mu
	proven *http.Transport // guarded by mu
}

// AlwaysKnown is the known of NewProvenClient for requests that only a server with the proof can answer.
func AlwaysKnown() bool { return true }

// NewProvenClient returns a client with the policy of shared for one server, which shows a key over plain HTTP only to
// a server that proves to know it. The transport of shared must be an *http.Transport, which both use from then on.
// base is the server's URL, name what people call it, known whether the server must prove itself.
func NewProvenClient(shared *http.Client, base *url.URL, name string, known func() bool) *http.Client {
	own := *shared
	plain, _ := shared.Transport.(*http.Transport)
	own.Transport = &provenTransport{Base: base, Name: name, Plain: plain, Known: known}
	return &own
}

// RoundTrip implements http.RoundTripper.
func (t *provenTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	key := req.Header.Get(keyHeader)
	if key == "" || req.URL.Scheme != "http" || !t.Known() || t.proxied(req) {
		return t.Plain.RoundTrip(req)
	}
	answer, err := t.provenFor(key).RoundTrip(req)
	if moved, ok := errors.AsType[*movedError](err); ok {
		return moved.answer(req), nil
	}
	return answer, err
}

// ProofBusyError is returned for a request that was not made, because the server cannot prove anything now.
type ProofBusyError struct {
	Status int // of its answer
}

func (e *ProofBusyError) Error() string {
	return fmt.Sprintf("ask for proof: the server answers %d %s", e.Status, http.StatusText(e.Status))
}

// movedError says that the server redirects requests for the proof.
type movedError struct {
	status int
	to     *url.URL // nil: nobody knows where
}

func (e *movedError) Error() string { return "the server sends on whoever asks for the proof" }

// answer sends a request on to where the question was sent on to. The policy of the client says what follows.
func (e *movedError) answer(req *http.Request) *http.Response {
	header := http.Header{}
	if e.to != nil {
		to := *req.URL
		to.Scheme, to.Host = e.to.Scheme, e.to.Host
		header.Set("Location", to.String())
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", e.status, http.StatusText(e.status)), StatusCode: e.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: http.NoBody, Request: req,
	}
}

// proxied reports whether a request goes through a proxy of the user's choice, which reads the key anyway.
func (t *provenTransport) proxied(req *http.Request) bool {
	if t.Plain.Proxy == nil {
		return false
	}
	proxy, err := t.Plain.Proxy(req)
	return err == nil && proxy != nil
}

// CloseIdleConnections closes connections that no request uses.
func (t *provenTransport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.proven != nil {
		t.proven.CloseIdleConnections()
	}
}

// provenFor returns a transport whose connections all have proven to know a key.
func (t *provenTransport) provenFor(key string) *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.proven != nil && t.key == key {
		return t.proven
	}
	if t.proven != nil {
		t.proven.CloseIdleConnections()
	}
	t.key, t.proven = key, t.Plain.Clone()
	t.proven.Proxy = nil
	dial := t.Plain.DialContext
	t.proven.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		closes, err := t.prove(ctx, conn, key)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		if closes { // a server that ends each connection after one answer
			return dial(ctx, network, address)
		}
		return conn, nil
	}
	return t.proven
}

// prove makes the other end of a connection prove that it knows the key. closes: it ends the connection after its
// answer.
func (t *provenTransport) prove(ctx context.Context, conn net.Conn, key string) (closes bool, err error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(proofPatience)); err != nil {
		return false, fmt.Errorf("ask for proof: %w", err)
	}
	hash, nonce := sha256.Sum256([]byte(key)), rand.Text()
	to := t.Base.JoinPath(KeyProofPath)
	to.RawQuery = url.Values{"key": {KeyID(hash)}, "nonce": {nonce}, "proof": {ClientProof(hash, nonce)}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return false, fmt.Errorf("ask for proof: %w", err)
	}
	if err := req.Write(conn); err != nil {
		return false, fmt.Errorf("ask for proof: %w", err)
	}
	from := bufio.NewReader(conn)
	answer, err := http.ReadResponse(from, req)
	if err != nil {
		return false, t.unanswered(ctx, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	if err != nil {
		return false, t.unanswered(ctx, err)
	}
	if answer.StatusCode/100 == 3 {
		to, _ := answer.Location() // nil: it does not say where
		return false, &movedError{answer.StatusCode, to}
	}
	if err := t.judge(answer.StatusCode, text, hash, nonce); err != nil {
		return false, err
	}
	if from.Buffered() > 0 {
		return false, t.unproven(answer.StatusCode, "it says more than it was asked")
	}
	return answer.Close, conn.SetDeadline(time.Time{})
}

// unanswered is the error for a peer that sends no complete answer. An answer that is not HTTP is no proof; a broken
// connection proves nothing either way.
func (t *provenTransport) unanswered(ctx context.Context, err error) error {
	var broken net.Error
	if ctx.Err() != nil || errors.As(err, &broken) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("ask for proof: %w", err)
	}
	return t.unproven(0, "its answer is not HTTP")
}

// judge checks an answer. A server that cannot answer now may prove itself later.
func (t *provenTransport) judge(status int, text []byte, hash [32]byte, nonce string) error {
	switch {
	case status >= 500 || status == http.StatusTooManyRequests:
		return &ProofBusyError{status}
	case status == http.StatusUnauthorized:
		e := UnprovenError{Server: t.server(), Why: "it answers 401, as a server older than the proof does", Status: status}
		var a struct{ Error struct{ Code string } }
		e.UnknownKey = json.Unmarshal(text, &a) == nil && a.Error.Code == CodeUnknownKey
		return &e
	case status != http.StatusOK:
		return t.unproven(status, fmt.Sprintf("it answers %d %s", status, http.StatusText(status)))
	}
	var a KeyProof
	if err := json.Unmarshal(bytes.TrimSpace(text), &a); err != nil {
		return t.unproven(status, "its answer is no proof")
	}
	if !EqualProofs(a.Proof, ServerProof(hash, nonce, a.Store)) {
		return t.unproven(status, "its proof is wrong")
	}
	return nil
}

func (t *provenTransport) unproven(status int, why string) error {
	return &UnprovenError{Server: t.server(), Why: why, Status: status}
}

// server returns what people call it.
func (t *provenTransport) server() string { return cmp.Or(t.Name, t.Base.Redacted()) }
