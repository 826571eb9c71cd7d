package proof_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/proof"
	"github.com/ccship/ccship/e2e/kit"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/transcript/redact"
)

// old is a ccship-server that cannot mask, and a plain server next to it.
type old struct {
	t   testing.TB
	url string
}

const plain = "http://plain.example"

func (o old) SpeaksExtension(dest string) bool { return dest != plain }

func (o old) Reader(string) *remote.Client {
	base, err := url.Parse(o.url)
	kit.Must(o.t, err)
	return &remote.Client{Base: base, Key: func() (string, error) { return "k", nil }, HTTP: http.DefaultClient}
}

// For masks for every server but one.
func (o old) For(dest, _ string) *redact.Masker {
	if dest == "unmasked" {
		return nil
	}
	m, err := redact.New(redact.Key{1})
	kit.Must(o.t, err)
	return m
}

// TestCannot names servers that speak only the base protocol, leaves out those for which nothing is masked, and says
// what to do about a server that is too old.
func TestCannot(t *testing.T) {
	t.Parallel()
	sessions := `{"sessions":[],"next":null}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/sessions" {
			_, _ = w.Write([]byte(sessions))
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error":{"code":"not_found","message":"no such call"}}`))
	}))
	defer server.Close()
	o := old{t, server.URL}
	r := proof.NewRemasker(proof.RemaskerDeps{Servers: o, Masking: o, Machine: "m"})
	sum, err := r.Run(t.Context(), []string{plain, "unmasked"}, 0, true)
	if err != nil || len(sum.Plain) != 1 || sum.Plain[0] != plain || sum.Total != 0 {
		t.Errorf("%+v, %v", sum, err)
	}
	sessions = `{"sessions":[{"session_id":"s"}],"next":null}`
	_, err = r.Run(t.Context(), []string{server.URL}, 0, true)
	e, ok := errors.AsType[*control.Error](err)
	if !ok || !strings.Contains(e.Message, "too old") || !strings.Contains(e.Hint, "upgrade") {
		t.Errorf("%v", err)
	}
}
