// Package keyproof lets a client and a server prove to each other that they know the same API key, without showing it.
// It does not know who has which key, or what follows from the proof.
//
// The client sends a nonce and its HMAC under the key's hash. The server, which stores the hash, answers with an HMAC
// of the nonce and of its store's id. Neither HMAC is valid for another nonce. Keys are random, so they cannot be
// guessed. A man in the middle can relay both; only TLS prevents that.
package keyproof

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"regexp"
)

// Path is where a server answers, below its base path. The query has key, nonce and proof.
const Path = "/api/proof"

// Answer is a server's answer.
type Answer struct {
	Store string `json:"store"` // id of its store
	Proof string `json:"proof"` // see Server
}

// CodeUnknownKey is the error code of a server's refusal (401): no key of its fits the proof. A server that is older
// than the proof refuses the question with another code.
const CodeUnknownKey = "unknown_key"

// ID names a key in public. It is derived from the key's hash, so that a server can find the key.
func ID(hash [32]byte) string { return sum(hash, "ccship key id")[:32] }

// Client is the proof that a client knows a key.
func Client(hash [32]byte, nonce string) string { return sum(hash, "ccship client", nonce) }

// Server is the proof that a server with a store knows a key.
func Server(hash [32]byte, nonce, store string) string {
	return sum(hash, "ccship server", nonce, store)
}

// Respond answers the query of a client for a server that knows one key only; false: the client does not prove to know
// it.
func Respond(hash [32]byte, store string, query url.Values) (Answer, bool) {
	nonce := query.Get("nonce")
	if query.Get("key") != ID(hash) || !ValidNonce(nonce) || !Equal(query.Get("proof"), Client(hash, nonce)) {
		return Answer{}, false
	}
	return Answer{Store: store, Proof: Server(hash, nonce, store)}, true
}

// Equal compares two proofs.
func Equal(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }

var nonceForm = regexp.MustCompile(`^[0-9A-Z]{26}$`)

// ValidNonce reports whether a nonce has the form of crypto/rand.Text.
func ValidNonce(nonce string) bool { return nonceForm.MatchString(nonce) }

func sum(hash [32]byte, parts ...string) string {
	h := hmac.New(sha256.New, hash[:])
	for _, p := range parts {
		_, _ = h.Write([]byte(p + "\n")) // never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}
