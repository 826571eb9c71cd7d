package daemon

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

// A sync says "delivered" only when the dead letters that a new server version has queued again have arrived.
func TestSyncWaitsForDeadLettersOfANewVersion(t *testing.T) {
	w := newWorld(t)
	var newer atomic.Bool
	var count atomic.Int64
	w.server.announces = false // so that bodies are not compressed
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		poison := err == nil && bytes.Contains(body, []byte("poison"))
		rw.Header().Set("Ccship-Protocol", "1")
		rw.Header().Set(protocol.HeaderLedger, fmt.Sprint("s ", count.Add(1)))
		rw.Header().Set(protocol.HeaderServer, map[bool]string{false: "1.0.0", true: "1.0.1"}[newer.Load()])
		if poison && !newer.Load() {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		if newer.Load() && r.Method == http.MethodPost {
			<-time.After(300 * time.Millisecond) // the sync waits for the new line already, then for the dead letter
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.server.ServeHTTP(rw, r)
	}))
	t.Cleanup(web.Close)
	w.cfg.ServerURL = web.URL
	const fine, poison = `{"type":"user","text":"fine"}` + "\n", `{"type":"user","text":"poison"}` + "\n"
	w.startWith("-p/"+sessionA+".jsonl", record("/home/kim/shop", 0))
	w.send("-p/"+sessionA+".jsonl", fine+poison+fine)
	n := len(w.letters())
	kit.Require(t, n == 1, "%d dead letters, want 1", n)
	newer.Store(true)
	w.write("-p/"+sessionA+".jsonl", fine)
	r := w.sync()
	kit.Check(t, r.Done && r.Dead == 0 && r.Waiting == 0, "sync: %+v", r)
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	line := w.server.streams[sessionA][0].lines[2]
	kit.Check(t, bytes.Contains(line, []byte("poison")), "line 2 is %q when the sync is done", line)
}
