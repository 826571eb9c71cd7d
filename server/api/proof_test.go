package api_test

import (
	"crypto/rand"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
)

// TestProofOfNewKey: a key works at once, also when the server has just looked for another one that it did not know.
func TestProofOfNewKey(t *testing.T) {
	r := newRig(t)
	ask := func(key string, want int) {
		t.Helper()
		hash, nonce := auth.HashKey(key), rand.Text()
		q := url.Values{"key": {protocol.KeyID(hash)}, "nonce": {nonce}, "proof": {protocol.ClientProof(hash, nonce)}}
		if a := r.get("/api/proof?" + q.Encode()); a.status != want {
			t.Errorf("%d %s, want %d", a.status, a.body, want)
		}
	}
	for _, name := range []string{"ann", "ben"} {
		ask("a key of nobody, before "+name+"'s", 401)
		ask(r.person(name, server.Member).key, 200)
	}
}

// proof asks for the proof that the server knows a key, as a client that knows it and as clients that do not.
func (r *rig) proof(key string) {
	r.t.Helper()
	hash, nonce := auth.HashKey(key), rand.Text()
	ask := func(id, nonce, proof string) string {
		return "/api/proof?" + url.Values{"key": {id}, "nonce": {nonce}, "proof": {proof}}.Encode()
	}
	a := r.get(ask(protocol.KeyID(hash), nonce, protocol.ClientProof(hash, nonce)))
	var said protocol.KeyProof
	if err := json.Unmarshal(a.body, &said); err != nil || a.status != 200 || said.Store == "" ||
		said.Proof != protocol.ServerProof(hash, nonce, said.Store) {
		r.t.Errorf("the server does not prove to know the key: %d %s %v", a.status, a.body, err)
	}
	for what, path := range map[string]string{
		"a wrong proof":        ask(protocol.KeyID(hash), nonce, protocol.ServerProof(hash, nonce, said.Store)),
		"another nonce":        ask(protocol.KeyID(hash), rand.Text(), protocol.ClientProof(hash, nonce)),
		"no nonce":             ask(protocol.KeyID(hash), "", protocol.ClientProof(hash, "")),
		"an unknown key":       ask(strings.Repeat("0", 32), nonce, protocol.ClientProof(hash, nonce)),
		"nothing but the name": ask(protocol.KeyID(hash), nonce, ""),
	} {
		if a := r.get(path); a.status != 401 || !strings.Contains(string(a.body), protocol.CodeUnknownKey) || strings.Contains(string(a.body), "proof\":") {
			r.t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
}
