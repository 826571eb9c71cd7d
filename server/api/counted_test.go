package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/ccship/ccship/server"
)

// TestKeysAreCounted: a user has a hundred keys at most; one that is revoked frees its slot, and others are not
// hindered.
func TestKeysAreCounted(t *testing.T) {
	owner := newRig(t)
	eve := owner.person("eve", server.Viewer) // with a key
	for i := range 99 {
		eve.send("POST", "/api/keys", fmt.Sprintf(`{"name":"k%d"}`, i), http.StatusCreated)
	}
	eve.send("POST", "/api/keys", `{"name":"more"}`, http.StatusConflict)
	owner.send("POST", "/api/keys", `{"name":"others"}`, http.StatusCreated)
	eve.send("DELETE", "/api/keys/k0", "", http.StatusOK)
	eve.send("POST", "/api/keys", `{"name":"more"}`, http.StatusCreated)
}

// TestLinksAreCounted: a user has two hundred links to sessions that work at most.
func TestLinksAreCounted(t *testing.T) {
	owner := newRig(t)
	ann := owner.person("ann", server.Member)
	ann.send("POST", "/api/conversations", `{"project_hash":"p","session_id":"s","entries":[{"line_index":0,"type":"user","message":{"role":"user","content":"a"}}]}`, http.StatusOK)
	for range 200 {
		ann.send("POST", "/api/sessions/s/share-links", `{}`, http.StatusCreated)
	}
	ann.send("POST", "/api/sessions/s/share-links", `{}`, http.StatusConflict)
}
