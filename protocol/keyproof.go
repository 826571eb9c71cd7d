package protocol

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

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
