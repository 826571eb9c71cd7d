package protocol

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// prover is a server that knows a key.
func prover(key string) http.HandlerFunc {
	hash := sha256.Sum256([]byte(key))
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		nonce := q.Get("nonce")
		if q.Get("key") != KeyID(hash) || !ValidNonce(nonce) || !EqualProofs(q.Get("proof"), ClientProof(hash, nonce)) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(KeyProof{Store: "s", Proof: ServerProof(hash, nonce, "s")})
	}
}

// TestProvenTransport shows a key over a connection only after its other end has proven to know it, once a connection.
func TestProvenTransport(t *testing.T) {
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
			_ = json.NewEncoder(w).Encode(KeyProof{Proof: r.URL.Query().Get("proof")})
		}, "", true, 2, 0, false},
		{"says too much", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1<<20)) }, "", true, 2, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var proofs, keys atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get(keyHeader) != "" {
					keys.Add(1)
				}
				if r.URL.Path == test.base+KeyProofPath {
					proofs.Add(1)
					test.answer(w, r)
				}
			}))
			defer server.Close()
			base := kit.Try(url.Parse(server.URL + test.base)).Must(t)
			plain := &http.Transport{DialContext: (&net.Dialer{}).DialContext}
			transport := &provenTransport{Base: base, Plain: plain, Known: func() bool { return test.known }}
			defer transport.CloseIdleConnections()
			defer plain.CloseIdleConnections()
			for range 2 {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base.JoinPath("api").String(), strings.NewReader("lines"))
				kit.Must(t, err)
				req.Header.Set(keyHeader, key)
				answer, err := (&http.Client{Transport: transport}).Do(req)
				_, unproven := errors.AsType[*UnprovenError](err)
				kit.Check(t, unproven != test.trusts && (err == nil) == test.trusts, "trusted: %v, want %v", err, test.trusts)
				if err == nil {
					_, _ = io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
				}
			}
			kit.Check(t, proofs.Load() == test.proofs && keys.Load() == test.keys,
				"%d proofs were asked for and %d keys shown, want %d and %d", proofs.Load(), keys.Load(), test.proofs, test.keys)
		})
	}
}

// A server that sends everybody on is followed, by the policy of the client, without a key over the first connection.
func TestProofMoved(t *testing.T) {
	var keys atomic.Int64
	to := "https://127.0.0.1:1"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(keyHeader) != "" {
			keys.Add(1)
		}
		http.Redirect(w, r, to+r.URL.RequestURI(), http.StatusPermanentRedirect)
	}))
	defer server.Close()
	base := kit.Try(url.Parse(server.URL)).Must(t)
	shared := &http.Client{
		Transport:     &http.Transport{DialContext: (&net.Dialer{}).DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	client := NewProvenClient(shared, base, "", AlwaysKnown)
	req := kit.Try(http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/me?a=b", nil)).Must(t)
	req.Header.Set(keyHeader, "ccs_right")
	answer := kit.Try(client.Do(req)).Must(t)
	defer answer.Body.Close()
	if at := answer.Header.Get("Location"); answer.StatusCode != http.StatusPermanentRedirect || at != to+"/api/me?a=b" {
		t.Errorf("answer %s, to %q", answer.Status, at)
	}
	kit.Check(t, keys.Load() <= 0, "the key was shown")
}

// What one process notes, another knows.
func TestProvenServers(t *testing.T) {
	m := ProvenServers{filepath.Join(t.TempDir(), "proven")}
	for range 2 {
		for _, server := range []string{"http://a", "http://b"} {
			kit.Must(t, m.Add(server))
		}
	}
	text, err := os.ReadFile(m.Path)
	kit.Check(t, err == nil && string(text) == "http://a\nhttp://b\n", "%q %v", text, err)
	kit.Check(t, m.Has("http://a") && !m.Has("http://") && !m.Has(""), "other servers than were noted")
	unreadable := (ProvenServers{t.TempDir()})
	kit.Check(t, unreadable.Has("http://a"), "what cannot be read names no server")
}

// A proof is worth nothing for another nonce, store, key or direction.
func TestProofs(t *testing.T) {
	a, b := sha256.Sum256([]byte("a")), sha256.Sum256([]byte("b"))
	nonce := rand.Text()
	seen := map[string]bool{}
	for _, proof := range []string{
		ClientProof(a, nonce), ClientProof(b, nonce), ClientProof(a, rand.Text()), ServerProof(a, nonce, "s"), ServerProof(b, nonce, "s"),
		ServerProof(a, nonce, "t"), ServerProof(a, rand.Text(), "s"), ServerProof(a, nonce, ""), KeyID(a), KeyID(b),
	} {
		kit.Check(t, !seen[proof], "%s proves two things", proof)
		seen[proof] = true
	}
	kit.Check(t, ValidNonce(nonce) && !ValidNonce("") && !ValidNonce(nonce+"\n"), "nonce %q", nonce)
}

func TestReceipts(t *testing.T) {
	r := ReceiptsAfter(&Ledger{Store: "s", Count: 4})
	for _, x := range []struct {
		store string
		count int64
		want  bool
	}{
		{"s", 5, false}, {"s", 8, false}, {"s", 6, false}, // answers arrive in another order
		{"", 0, false},  // nothing was counted
		{"s", 6, true},  // a second write has this count
		{"s", 7, false}, // late
		{"s", 7, true}, {"s", 8, true}, {"s", 4, true},
		{"s", 2000, false}, {"s", 1999, false}, {"s", 1999, true},
	} {
		kit.Equal(t, fmt.Sprintf("%+v", x), r.Repeats(&Ledger{Store: x.store, Count: x.count}), x.want)
	}
}

// TestReceiptsOfFirstAnswers: before its first answer a client knows no store, and several requests may be under way.
func TestReceiptsOfFirstAnswers(t *testing.T) {
	r := ReceiptsAfter(&Ledger{})
	for _, count := range []int64{2, 1, 3} {
		kit.Check(t, !r.Repeats(&Ledger{Store: "s", Count: count}), "%d", count)
	}
	kit.Check(t, r.Repeats(&Ledger{Store: "s", Count: 3}), "the second 3")
	kit.Check(t, r.Repeats(&Ledger{Store: "t", Count: 4}), "another store")
}
