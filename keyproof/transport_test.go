package keyproof

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// prover is a server that knows a key.
func prover(key string) http.HandlerFunc {
	hash := sha256.Sum256([]byte(key))
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("key") != ID(hash) || !ValidNonce(q.Get("nonce")) || !Equal(q.Get("proof"), Client(hash, q.Get("nonce"))) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(Answer{Store: "s", Proof: Server(hash, q.Get("nonce"), "s")})
	}
}

// TestTransport shows a key over a connection only after its other end has proven to know it, once a connection.
func TestTransport(t *testing.T) {
	const key = "ccs_right"
	for _, test := range []struct {
		name   string
		answer http.HandlerFunc // to Path
		base   string           // of the server
		known  bool
		proofs int64 // that were asked for in two requests
		keys   int64 // that were shown
		trusts bool
	}{
		{"knows the key", prover(key), "", true, 1, 2, true},
		{"below a path", prover(key), "/base", true, 1, 2, true},
		{"knows another key", prover("ccs_wrong"), "", true, 2, 0, false},
		{"is a plain server", http.NotFound, "", true, 2, 0, false},
		{"was not there before", http.NotFound, "", false, 0, 2, true},
		{"ends its connections", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			prover(key)(w, r)
		}, "", true, 1, 2, true},
		{"sends the proof back", func(w http.ResponseWriter, r *http.Request) {
			_ = json.NewEncoder(w).Encode(Answer{Proof: r.URL.Query().Get("proof")})
		}, "", true, 2, 0, false},
		{"says too much", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1<<20)) }, "", true, 2, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var proofs, keys atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get(keyHeader) != "" {
					keys.Add(1)
				}
				if r.URL.Path == test.base+Path {
					proofs.Add(1)
					test.answer(w, r)
				}
			}))
			defer server.Close()
			base, err := url.Parse(server.URL + test.base)
			if err != nil {
				t.Fatal(err)
			}
			plain := &http.Transport{DialContext: (&net.Dialer{}).DialContext}
			transport := &Transport{Base: base, Plain: plain, Known: func() bool { return test.known }}
			defer transport.CloseIdleConnections()
			defer plain.CloseIdleConnections()
			for range 2 {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base.JoinPath("api").String(), strings.NewReader("lines"))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set(keyHeader, key)
				answer, err := (&http.Client{Transport: transport}).Do(req)
				if _, unproven := errors.AsType[*UnprovenError](err); unproven == test.trusts || (err == nil) != test.trusts {
					t.Errorf("trusted: %v, want %v", err, test.trusts)
				}
				if err == nil {
					_, _ = io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
				}
			}
			if proofs.Load() != test.proofs || keys.Load() != test.keys {
				t.Errorf("%d proofs were asked for and %d keys shown, want %d and %d", proofs.Load(), keys.Load(), test.proofs, test.keys)
			}
		})
	}
}

// A proof is worth nothing for another nonce, store, key or direction.
func TestProofs(t *testing.T) {
	a, b := sha256.Sum256([]byte("a")), sha256.Sum256([]byte("b"))
	nonce := rand.Text()
	seen := map[string]bool{}
	for _, proof := range []string{
		Client(a, nonce), Client(b, nonce), Client(a, rand.Text()), Server(a, nonce, "s"), Server(b, nonce, "s"),
		Server(a, nonce, "t"), Server(a, rand.Text(), "s"), Server(a, nonce, ""), ID(a), ID(b),
	} {
		if seen[proof] {
			t.Errorf("%s proves two things", proof)
		}
		seen[proof] = true
	}
	if !ValidNonce(nonce) || ValidNonce("") || ValidNonce(nonce+"\n") {
		t.Errorf("nonce %q", nonce)
	}
}
