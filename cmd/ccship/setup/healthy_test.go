package setup

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

// TestWaitHealthy: another user can take the port before the server starts, but cannot prove to run for this user.
func TestWaitHealthy(t *testing.T) {
	ctx, enough := context.WithCancel(t.Context())
	asked := 0
	impostor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kit.Check(t, r.Header.Get("X-API-Key") == "", "the impostor is shown the key")
		_, _ = io.WriteString(w, `{"ok":true}`)
		if asked++; asked == 3 {
			enough()
		}
	}))
	defer impostor.Close()
	kit.Check(t, (&serverChild{url: impostor.URL}).waitHealthy(ctx) != nil, "whoever answers is taken for the server")
	key := filepath.Join(t.TempDir(), "api_key")
	kit.Must(t, os.WriteFile(key, []byte("k\n"), 0o600))
	_, err := ownLink(t.Context(), config.Config{ServerURL: impostor.URL, APIKeyFile: key})
	kit.Check(t, err != nil, "whoever answers is asked for a link")
	own := httptest.NewServer(http.HandlerFunc(protocol.AnswerSameHost))
	defer own.Close()
	kit.Err(t, "the server itself", nil)((&serverChild{url: own.URL}).waitHealthy(t.Context()))
}
