package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api"
)

// TestSlowBodyOutlivesKey: a request whose body is still being read when its key is revoked stores nothing and makes no
// key.
func TestSlowBodyOutlivesKey(t *testing.T) {
	owner := newRig(t, func(s *api.Server) { api.SetBeat(s, time.Minute) })
	for path, body := range map[string]string{
		"/api/conversations": piece{lines: objects("a", 0, 3)}.body("late"),
		"/api/keys":          `{"name":"another"}`,
	} {
		name := "ann" + strings.ReplaceAll(path, "/", "-")
		ann := owner.person(name, server.Member)
		in, out := io.Pipe()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, owner.http.URL+path, in)
		must(t, err)
		req.Header.Set("X-API-Key", ann.key)
		req.Header.Set("Content-Type", "application/json")
		status := make(chan int, 1)
		go func() {
			res, err := owner.http.Client().Do(req)
			if err != nil {
				t.Error(err)
				status <- 0
				return
			}
			res.Body.Close()
			status <- res.StatusCode
		}()
		if _, err := io.WriteString(out, body[:5]); err != nil { // taken by the client
			t.Fatal(err)
		}
		owner.check(waitBusy(owner))
		owner.send("DELETE", "/api/keys/"+name+"%27s%20key", "", 200)
		go func() {
			_, _ = io.WriteString(out, body[5:]) // the server may not read it to its end
			_ = out.Close()
		}()
		if got := <-status; got != http.StatusUnauthorized {
			t.Errorf("%s after its key was revoked: %d", path, got)
		}
	}
	if a := owner.get("/api/sessions/late"); a.status != http.StatusNotFound {
		t.Errorf("its session: %d", a.status)
	}
}

// waitBusy waits until the server works on a request beside the one that asks.
func waitBusy(r *rig) error {
	for {
		text := string(r.get("/metrics").body)
		if strings.Contains(text, "ccship_server_slots_busy 1\n") || strings.Contains(text, "ccship_server_ingest_requests 1\n") {
			return nil
		}
		if r.t.(*testing.T).Context().Err() != nil {
			return r.t.(*testing.T).Context().Err()
		}
	}
}
