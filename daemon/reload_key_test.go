package daemon

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// TestReloadKey shows the new key at once, and from another file.
func TestReloadKey(t *testing.T) {
	w := newFileWorld(t)
	first, second := filepath.Join(w.cfg.Home(), "one"), filepath.Join(w.cfg.Home(), "two")
	for path, key := range map[string]string{first: "one", second: "two"} {
		kit.Must(t, os.WriteFile(path, []byte(key+"\n"), 0o600))
	}
	w.set("api_key_file", strconv.Quote(first))
	w.loadAndStart()
	w.send("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	w.set("api_key_file", strconv.Quote(second))
	w.reload("api_key_file")
	w.send("-p/"+sessionA+".jsonl", records("/home/kim/shop", 5, 6))
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	n := len(w.server.keys)
	kit.Check(t, w.server.keys[0] == "one" && w.server.keys[n-1] == "two", "keys shown: %q", w.server.keys)
}

// TestReloadKeepsKeyFromOldServer changes server and key at once, with rows waiting for the old server: the new key
// is never shown to it, the old rows stay, and go when it is the user's server again.
func TestReloadKeepsKeyFromOldServer(t *testing.T) {
	w := newFileWorld(t)
	file := filepath.Join(w.cfg.Home(), "key")
	write := func(key string) {
		t.Helper()
		kit.Must(t, os.WriteFile(file, []byte(key+"\n"), 0o600))
	}
	write("first")
	w.set("api_key_file", strconv.Quote(file))
	w.load()
	path := "-p/" + sessionA + ".jsonl"
	w.startWith(path, records("/home/kim/shop", 0, 5))
	w.server.with(func() { w.server.busy = true })
	w.write(path, records("/home/kim/shop", 5, 7))
	w.until("rows wait for the first server", func() bool { return w.status().Outbox.Entries == 2 })
	second := newMemServer()
	web := httptest.NewServer(second)
	defer web.Close()
	write("second-key")
	w.set("server_url", strconv.Quote(web.URL))
	w.reload("server_url")
	w.until("the second server has it", func() bool { return second.newest(sessionA) == records("/home/kim/shop", 0, 7) })
	w.server.with(func() { w.server.busy = false })
	w.until("the first server refuses its key", func() bool {
		if _, err := w.client.Flush(t.Context()); err != nil { // an answer under way may have made it wait again
			t.Fatal(err)
		}
		s := w.status().Servers
		return len(s) == 2 && s[1].State == "refused" && s[1].Kind == "refused_key"
	})
	w.server.mu.Lock()
	for _, key := range w.server.keys {
		kit.Check(t, key == "first", "the first server was shown the key %q", key)
	}
	w.server.mu.Unlock()
	w.until("only the first server's rows wait", func() bool { return w.status().Outbox.Entries == 2 })
}

// TestReloadPendingKeepsKey writes another server and its key as setup does, and looks at what the server of before is
// shown until that is in force, by delivery and by verify.
func TestReloadPendingKeepsKey(t *testing.T) {
	w := newFileWorld(t)
	file := filepath.Join(w.cfg.Home(), "key")
	kit.Must(t, os.WriteFile(file, []byte("first\n"), 0o600))
	w.set("api_key_file", strconv.Quote(file))
	w.load()
	path := "-p/" + sessionA + ".jsonl"
	w.startWith(path, records("/home/kim/shop", 0, 5))
	second := newMemServer()
	web := httptest.NewServer(second)
	defer web.Close()
	kit.Must(t, config.WriteServer(w.cfg.Path, file, "second-key", []config.Value{{Name: "server_url", Value: web.URL}}))
	w.write(path, records("/home/kim/shop", 5, 7))
	if _, err := w.client.Verify(t.Context(), control.VerifyRequest{Timeout: "1s"}, nil); err != nil {
		t.Log(err) // the server is not to be asked now
	}
	w.until("the second server has it, with no one's help", func() bool { return second.newest(sessionA) == records("/home/kim/shop", 0, 7) })
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	for _, key := range w.server.keys {
		kit.Require(t, key == "first", "the first server was shown the key %q", key)
	}
}

// TestReloadUnchangedFreesKey shows a new key to the same server, though the file was written again and says the same.
func TestReloadUnchangedFreesKey(t *testing.T) {
	w := newFileWorld(t)
	file := filepath.Join(w.cfg.Home(), "key")
	kit.Must(t, os.WriteFile(file, []byte("first\n"), 0o600))
	w.set("api_key_file", strconv.Quote(file))
	w.loadAndStart()
	kit.Must(t, config.WriteServer(w.cfg.Path, file, "second-key", nil))
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	w.until("it is delivered", func() bool { return w.server.newest(sessionA) == records("/home/kim/shop", 0, 5) })
}
