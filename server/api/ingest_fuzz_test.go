package api_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api"
	"github.com/ccship/ccship/server/auth"
)

// FuzzIngest sends anything to the handler, with a real store behind it. Whatever comes, the answer is one of the
// protocol's, and what is acknowledged is there.
func FuzzIngest(f *testing.F) {
	names, err := filepath.Glob("../../e2e/testdata/wire/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, "")
	}
	f.Add([]byte(bare), "gzip")
	f.Add([]byte("\x28\xb5\x2f\xfd"), "zstd")
	f.Add([]byte(piece{gen: 1, rewound: 3, lines: []string{"{}"}}.body("s/agent-1")), "")
	r := newRig(f)
	s := api.New(r.store, auth.New(r.store, discard()), server.NewHub(r.store))
	s.MaxBody = 1 << 20
	h := s.Handler()
	f.Fuzz(func(t *testing.T, body []byte, encoding string) {
		req := httptest.NewRequest(http.MethodPost, "/api/conversations", bytes.NewReader(body))
		req.Header.Set("X-API-Key", r.key)
		req.Header.Set("Content-Encoding", encoding)
		res := httptest.NewRecorder()
		h.ServeHTTP(res, req)
		switch res.Code {
		case http.StatusOK:
		case http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
			return
		default:
			t.Fatalf("%d %s", res.Code, res.Body)
		}
		if encoding == "" {
			checkStored(t, r, body, res.Body.Bytes())
		}
	})
}

// checkStored looks for what was acknowledged.
func checkStored(t *testing.T, r *rig, body, answer []byte) {
	var sent struct {
		SessionID string `json:"session_id"`
		Ccship    *struct{ Machine, Epoch string }
	}
	if json.Unmarshal(body, &sent) != nil {
		return
	}
	var stored struct {
		Success bool
		Entries int `json:"entries_stored"`
	}
	if err := json.Unmarshal(answer, &stored); err != nil || !stored.Success {
		t.Fatalf("answer %s, %v", answer, err)
	}
	if stored.Entries == 0 && sent.Ccship == nil {
		return
	}
	snap, err := r.store.View(t.Context(), server.Scope{All: true}, server.Ref{SessionID: sent.SessionID})
	if err != nil {
		t.Fatalf("session %q was acknowledged: %v", sent.SessionID, err)
	}
	must(t, snap.Close())
}
