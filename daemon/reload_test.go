package daemon

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// fileWorld is a world that gets everything but its folders from a configuration file.
type fileWorld struct {
	*world
	lines map[string]string // the file, by key
}

func newFileWorld(t *testing.T) *fileWorld {
	t.Helper()
	w := &fileWorld{newWorld(t), map[string]string{}}
	w.lines["server_url"] = strconv.Quote(w.cfg.ServerURL)
	w.lines["roots"] = tomlList(w.cfg.Roots)
	home := w.cfg.Home()
	w.cfg.Path = filepath.Join(home, "config.toml")
	w.save()
	env := map[string]string{config.HomeVariable: home, "CCSHIP_CONFIG": w.cfg.Path} // which, unlike a flag, need not exist
	cfg := kit.Try(config.Load(map[string]string{
		"state_dir": w.cfg.StateDir, "socket": w.cfg.Socket, "head_room": "1",
	}, func(name string) (string, bool) { return env[name], env[name] != "" })).Must(t)
	cfg.Log = w.cfg.Log
	w.cfg = cfg
	return w
}

// save writes the file as a program does that knows how to.
func (w *fileWorld) save() {
	w.t.Helper()
	var text strings.Builder
	for key, value := range w.lines {
		fmt.Fprintf(&text, "%s = %s\n", key, value)
	}
	next := w.cfg.Path + ".next"
	kit.Must(w.t, os.WriteFile(next, []byte(text.String()), 0o600))
	kit.Must(w.t, os.Rename(next, w.cfg.Path))
}

// tomlList is a list as the file has it.
func tomlList(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = strconv.Quote(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// load reads the file as the next start does.
func (w *fileWorld) load() {
	w.t.Helper()
	cfg := kit.Try(w.cfg.With(nil)).Must(w.t)
	w.cfg = cfg
}

func (w *fileWorld) loadAndStart() {
	w.t.Helper()
	w.load()
	w.start()
}

func (w *fileWorld) set(key, value string) {
	w.t.Helper()
	w.lines[key] = value
	w.save()
}

// reload takes the file over and wants these keys to have changed.
func (w *fileWorld) reload(changed ...string) control.ReloadResult {
	w.t.Helper()
	r := kit.Try(w.client.Reload(w.t.Context())).Must(w.t)
	diff := cmp.Diff(changed, r.Changed)
	kit.Check(w.t, diff == "" && r.Config == w.cfg.Path, "reload %+v: %s", r, diff)
	return r
}

// notice is the first of a kind in the status.
func (w *world) notice(kind string) *control.Advice {
	for _, n := range w.status().Advice {
		if n.Kind == kind {
			return &n
		}
	}
	return nil
}

// TestReloadServer sends everything to the new server from line 0 while the old one's rows wait for it, and go there
// when it is back, though it is not the user's server any more.
func TestReloadServer(t *testing.T) {
	w := newFileWorld(t)
	path := "-p/" + sessionA + ".jsonl"
	w.startWith(path, records("/home/kim/shop", 0, 20))
	w.server.with(func() { w.server.busy = true })
	w.write(path, records("/home/kim/shop", 20, 30))
	w.until("rows wait for the first server", func() bool { return w.status().Outbox.Entries == 10 })
	second := newMemServer()
	web := httptest.NewServer(second)
	defer web.Close()
	w.set("server_url", strconv.Quote(web.URL))
	w.reload("server_url")
	all := records("/home/kim/shop", 0, 30)
	w.until("the second server has all of it", func() bool { return second.newest(sessionA) == all })
	w.until("only the first server's rows wait", func() bool { return w.status().Outbox.Entries == 10 })
	s := w.status()
	kit.Check(t, len(s.Servers) == 2 && s.Servers[0].URL == web.URL && s.Servers[1].URL == w.cfg.ServerURL && s.Servers[1].Batches != 0,
		"servers %+v", s.Servers)
	w.write(path, records("/home/kim/shop", 30, 33))
	w.until("new lines go to the second server", func() bool { return second.newest(sessionA) == all+records("/home/kim/shop", 30, 33) })
	w.server.with(func() { w.server.busy = false })
	w.must(w.client.Flush(t.Context()))
	w.until("the first server has got what was queued for it", func() bool { return w.server.newest(sessionA) == all })
	w.until("it is of no more interest", func() bool { return len(w.status().Servers) == 1 })
	r := w.verify()
	kit.Check(t, r.Equal && r.Proven && r.Transcripts[0].Server == web.URL, "verify: %+v", r)
	w.set("server_url", strconv.Quote(w.cfg.ServerURL))
	w.reload("server_url")
	want := all + records("/home/kim/shop", 30, 33)
	w.until("the first server has all of it again", func() bool { return w.server.newest(sessionA) == want })
	r = w.verify()
	kit.Check(t, r.Equal && r.Proven, "verify: %+v", r)
}

// TestReloadFirstServer begins to read once there is a server.
func TestReloadFirstServer(t *testing.T) {
	w := newFileWorld(t)
	url := w.lines["server_url"]
	delete(w.lines, "server_url")
	w.save()
	w.load()
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	w.start()
	s := w.status()
	kit.Check(t, s.State == "no_server", "state %s without a server", s.State)
	w.set("server_url", url)
	w.reload("server_url")
	w.until("the lines arrive", func() bool { return w.server.newest(sessionA) == records("/home/kim/shop", 0, 5) })
}

// TestReloadByItself notices a changed file within seconds, a broken one too, and a signal at once.
func TestReloadByItself(t *testing.T) {
	w := newFileWorld(t)
	hangups := make(chan os.Signal, 1)
	w.cfg.Hangup = hangups
	w.start()
	w.set("max_entries_per_request", "7")
	w.set("outbox_cap", `"1GiB"`)
	w.until("the change is in force", func() bool { return w.status().Outbox.Cap == 1<<30 })
	kit.Must(t, os.WriteFile(w.cfg.Path, []byte("outbox_cap = \n"), 0o600))
	w.until("status tells of the mistake", func() bool { n := w.notice("config"); return n != nil && n.Hint != "" })
	kit.Equal(t, "cap after a broken file", w.status().Outbox.Cap, 1<<30)
	w.set("outbox_cap", `"2GiB"`)
	hangups <- syscall.SIGHUP
	w.until("it is correct again", func() bool { return w.notice("config") == nil && w.status().Outbox.Cap == 2<<30 })
}

// TestReloadGone keeps to what was read when the file goes: exclusions must not end with it.
func TestReloadGone(t *testing.T) {
	w := newFileWorld(t)
	project := t.TempDir()
	w.set("exclude_projects", tomlList([]string{filepath.ToSlash(project)}))
	w.loadAndStart()
	kit.Must(t, os.Remove(w.cfg.Path))
	_, err := w.client.Reload(t.Context())
	e, ok := errors.AsType[*control.Error](err)
	kit.Check(t, ok && e.Code == control.CodeConfig && e.Hint != "", "reload without the file: %v", err)
	w.write("-p/"+sessionA+".jsonl", records(project, 0, 5))
	r := w.sync()
	kit.Check(t, r.Done && w.server.newest(sessionA) == "", "an excluded project was sent: %+v", r)
	w.save()
	w.reload()
	kit.Check(t, w.notice("config") == nil, "the notice stays")
}

// TestReloadRestart names what needs a restart, and goes on with the values of before, until they are put back.
func TestReloadRestart(t *testing.T) {
	w := newFileWorld(t)
	w.start()
	w.set("line_cap", `"1KiB"`)
	w.set("watch", `"poll"`)
	w.set("log_level", `"debug"`)
	r := w.reload("log_level")
	kit.Same(t, "Restart", cmp.Diff([]string{"watch", "line_cap"}, r.Restart))
	n := w.notice("restart")
	kit.Check(t, n != nil && strings.Contains(n.Text, "watch, line_cap") && n.Hint != "", "notice %+v", n)
	kit.Check(t, w.cfg.TextLog(io.Discard).Enabled(t.Context(), slog.LevelDebug), "the log level is not applied")
	delete(w.lines, "line_cap")
	delete(w.lines, "watch")
	w.save()
	if r := w.reload(); len(r.Restart) > 0 || w.notice("restart") != nil {
		t.Errorf("reload %+v, notice %+v", r, w.notice("restart"))
	}
}

// TestReloadRoots follows another root, with the history next to it, and lets go of the one before.
func TestReloadRoots(t *testing.T) {
	w := newFileWorld(t)
	other := filepath.Join(w.cfg.Home(), "other", "projects")
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	w.write("../../other/projects/-q/"+sessionB+".jsonl", records("/home/kim/other", 0, 5))
	w.startWith("../../other/history.jsonl", `{"display":"hello","project":"/home/kim/other"}`+"\n")
	w.set("roots", tomlList([]string{other}))
	w.set("history", "false")
	w.reload("roots", "history")
	w.until("the other root is delivered", func() bool { return w.server.newest(sessionB) == records("/home/kim/other", 0, 5) })
	s := w.status()
	kit.Check(t, s.Files.Tracked == 1 && s.Watch.Roots[0] == other, "status %+v %+v", s.Files, s.Watch)
	w.set("history", "true")
	w.reload("history")
	w.until("the history is delivered", func() bool { return w.historyStream() != "" })
	r := w.verify()
	kit.Check(t, r.Equal && r.Proven, "verify: %+v", r)
}

// TestReloadTypes leaves lines out from now on, and delivers them when that ends, over a restart too.
func TestReloadTypes(t *testing.T) {
	w := newFileWorld(t)
	text := record("/home/kim/shop", 0) + `{"type":"progress","n":1}` + "\n" + record("/home/kim/shop", 2)
	w.start()
	w.set("exclude_types", `["progress"]`)
	w.reload("exclude_types")
	w.write("-p/"+sessionA+".jsonl", text)
	r := w.sync()
	kit.Check(t, r.Done && r.Excluded == 1, "sync: %+v", r)
	v := w.verify()
	kit.Check(t, v.Equal && v.Excluded == 1, "verify: %+v", v)
	w.stop()
	delete(w.lines, "exclude_types")
	w.save()
	w.loadAndStart()
	w.until("the line is delivered", func() bool { return w.server.newest(sessionA) == text })
	v = w.verify()
	kit.Check(t, v.Equal && v.Excluded == 0, "verify: %+v", v)
	r = w.sync()
	kit.Check(t, r.Excluded == 0, "sync: %+v", r)
}

// TestReloadGoneForAMoment recovers when the file was away while it was asked for, and is back as it was.
func TestReloadGoneForAMoment(t *testing.T) {
	w := newFileWorld(t)
	w.start()
	aside := w.cfg.Path + ".aside"
	kit.Must(t, os.Rename(w.cfg.Path, aside))
	_, err := w.client.Reload(t.Context())
	kit.Check(t, err != nil && w.notice("config") != nil, "reload without the file: %v", err)
	kit.Must(t, os.Rename(aside, w.cfg.Path))
	w.until("the notice goes", func() bool { return w.notice("config") == nil })
}

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
