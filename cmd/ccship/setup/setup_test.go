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
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

// An import is waited for while it can go on. What waits for a server that was named by mistake before is no reason to.
func TestImportGoesOn(t *testing.T) {
	status := func(own string, batches, others, unread int64) control.Status {
		return control.Status{
			Servers: []control.Server{{URL: "own", State: own, Batches: batches}, {URL: "other", State: "retrying", Batches: others}},
			Files:   &control.Files{Tracked: 1, Bytes: 100, ReadBytes: 100 - unread},
		}
	}
	for _, c := range []struct {
		name            string
		reason          string
		status          control.Status
		goesOn, arrived bool
	}{
		{"still reading", "timeout", status("ok", 0, 0, 50), true, false},
		{"still sending", "timeout", status("ok", 7, 0, 0), true, false},
		{"sending beside a server that is gone", "unreachable", status("ok", 7, 3, 0), true, false},
		{"everything is there, but for a server that is gone", "unreachable", status("ok", 0, 3, 0), false, true},
		{"the server went away", "unreachable", status("retrying", 7, 0, 0), false, false},
		{"the key was revoked", "refused_key", status("refused", 7, 0, 0), false, false},
		{"the daemon went away", "unreachable", control.Status{}, false, false},
	} {
		if got := goesOn(control.SyncResult{Reason: c.reason}, c.status); got != c.goesOn || arrived(c.status) != c.arrived {
			t.Errorf("%s: goes on %v, arrived %v", c.name, got, arrived(c.status))
		}
	}
}

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

func TestFileSize(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a": "12345", "b/c": "123"} {
		path := filepath.Join(dir, name)
		kit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		kit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	all, one, none := fileSize(dir), fileSize(filepath.Join(dir, "a")), fileSize(filepath.Join(dir, "x"))
	kit.Check(t, all == 8 && one == 5 && none == 0, "%d %d %d", all, one, none)
}
