package doctor

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/internal/service"
)

// In a world in which no problems found no check says otherwise.
func TestAllIsWell(t *testing.T) {
	w := synced(t)
	r := w.examine()
	kit.Check(t, r.OK && r.Failed+r.Warned <= 0 && r.SchemaVersion == 1 && r.Version == "1.2.3", "%+v", r)
	seen := map[string]bool{}
	for _, f := range r.Findings {
		seen[f.ID] = true
		kit.Check(t, f.Level == OK || f.ID == "watch" && f.Level == Note, "%+v", f) // the limits of this machine may be low
		kit.Check(t, f.Fix == "" && f.Text != "", "%+v", f)
	}
	for _, id := range []string{"daemon", "version", "service", "unit", "linger", "socket", "config", "key", "server", "clock", "outbox", "retention", "roots", "watch", "state", "disk"} {
		kit.Check(t, seen[id], "nothing is said of %s", id)
	}
	fixes := ApplyFixes(context.Background(), r)
	kit.Check(t, len(fixes) == 0 && len(w.told.calls) == 0, "fixed without a problem: %+v %v", fixes, w.told.calls)
}

func TestDaemonDown(t *testing.T) {
	w := newWorld(t)
	w.told.st.Running, w.told.st.PID, w.told.st.Note = false, 0, "it failed (exit-code, exit status 1)"
	w.told.do = func(string) error { w.start(); return nil }
	r := w.examine()
	f := w.wants(r, "daemon", Fail, "not running", "`ccship service start`")
	kit.Check(t, f.Detail == w.told.st.Note && f.Safe, "%+v", f)
	kit.Check(t, !r.OK && r.Failed == 1, "%+v", r)
	for _, id := range []string{"socket", "version", "outbox", "delivery", "dead_letters", "roots", "watch", "state", "retention"} {
		w.silent(r, id)
	}
	fixes := ApplyFixes(context.Background(), r)
	kit.Check(t, len(fixes) == 1 && fixes[0].Done && fixes[0].ID == "daemon" && fixes[0].Command == "ccship service start",
		"%+v", fixes)
	w.told.st.Running = true
	r = w.examine()
	kit.Check(t, r.OK && len(ApplyFixes(context.Background(), r)) == 0 && len(w.told.calls) == 1, "after it was started: %+v %v", r, w.told.calls)
}

// A fix that fails is reported with its reason, and the others still run.
func TestFixFails(t *testing.T) {
	modes(t)
	w := newWorld(t)
	w.told.st.Running, w.told.st.PID = false, 0
	w.told.do = func(string) error { return &control.Error{Code: "not_started", Message: "no way", Hint: "look"} }
	key := w.write(".config/ccship/api_key", "k3y\n", 0)
	kit.Must(t, os.Chmod(key, 0o644))
	fixes := ApplyFixes(context.Background(), w.examine())
	want := []Fix{{ID: "key", Command: "chmod 600 " + key, Done: true}, {ID: "daemon", Command: "ccship service start", Error: "no way", Hint: "look"}}
	kit.Check(t, len(fixes) == 2 && fixes[0] == want[0] && fixes[1] == want[1], "%+v", fixes)
	more := ApplyFixes(context.Background(), w.examine(), fixes...)
	kit.Check(t, len(more) == 0, "tried again: %+v", more)
}

func TestNoService(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name            string
		st              service.Status
		err             error
		level           Level
		text, fix, down string
	}{
		{"no manager", service.Status{Manager: service.None, Note: "no systemd"}, nil, Warn, "not started automatically", "ccship run", "`ccship run`"},
		{"not installed", service.Status{Manager: service.SystemdUser}, nil, Warn, "not installed", "`ccship service install`", "`ccship service install`"},
		{"not enabled", service.Status{Manager: service.SystemdUser, Installed: true}, nil, Warn, "does not start automatically", "`ccship service install`", "`ccship service start`"},
		{"no bus", service.Status{}, &control.Error{Code: service.CodeNoSession, Message: "no user bus", Hint: "log in"}, Warn, "no user bus", "log in", "`ccship service install`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.t = t
			w.told.st, w.told.err = c.st, c.err
			r := w.examine()
			w.wants(r, "service", c.level, c.text, c.fix)
			w.wants(r, "daemon", Fail, "not running", c.down)
			for _, id := range []string{"unit", "linger", "environment"} {
				w.silent(r, id)
			}
		})
	}
}

func TestUnit(t *testing.T) {
	w := synced(t)
	w.told.do = func(string) error { w.told.current = true; return nil }
	w.told.current = false
	if r := w.examine(); w.wants(r, "unit", Warn, "differs from the one this version installs", "`ccship service install`").Safe {
		w.fixed(r, "unit")
	} else {
		t.Error("not safe")
	}
	kit.Check(t, strings.Join(w.told.calls, " ") == "install", "%v", w.told.calls)
	self := w.told.st.Binary
	w.told.st.Binary = w.write("elsewhere/ccship", "x", 0)
	w.wants(w.examine(), "unit", Note, "a different program", "`ccship service install`")
	w.told.current = false
	f := w.wants(w.examine(), "unit", Warn, "differs from the one", "`ccship service install`")
	kit.Check(t, !f.Safe, "which program is to run is for a person to say")
	w.told.st.Binary = filepath.Join(w.home, "gone")
	w.told.do = func(string) error { w.told.current, w.told.st.Binary = true, self; return nil }
	r := w.examine()
	w.wants(r, "unit", Fail, "does not exist", "`ccship service install`")
	w.fixed(r, "unit")
}

func TestLingerVersionAndForeground(t *testing.T) {
	w := synced(t)
	no := false
	w.told.st.Linger = &no
	w.wants(w.examine(), "linger", Note, "only while you are logged in", "sudo loginctl enable-linger ")
	w.opts.Version = "2.0.0"
	w.told.do = func(string) error { w.opts.Version = "1.2.3"; return nil }
	r := w.examine()
	w.wants(r, "version", Warn, "the daemon is version 1.2.3, this command line is 2.0.0", "`ccship service restart`")
	w.fixed(r, "version")
	w.told.st.Running, w.told.st.PID = false, 0
	w.opts.Version = "2.0.0"
	r = w.examine()
	w.wants(r, "daemon", Note, "not as a service", "stop it")
	kit.Check(t, !w.wants(r, "version", Warn, "2.0.0", "stop the daemon").Safe, "a daemon of nobody's is not restarted")
}

// Where nobody starts services, a daemon in the foreground is as it should be.
func TestForegroundWithoutManager(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.told.st = service.Status{Manager: service.None}
	r := w.examine()
	w.silent(r, "daemon")
	w.wants(r, "service", Warn, "not started automatically", "ccship run")
}

func TestUpsDaemon(t *testing.T) {
	w := newWorld(t)
	w.told.st = service.Status{Manager: service.SystemdUser}
	cfg := w.opts.Config
	cfg.Socket = w.opts.ForeignSocket
	w.startAt(cfg)
	w.wants(w.examine(), "daemon", Note, "as part of `ccship up`", "`ccship setup`")
}

func TestWedged(t *testing.T) {
	w := newWorld(t)
	w.opts.patience = hangs
	w.write(".claude/projects/-p/old.jsonl", `{"type":"user","cwd":"/p"}`+"\n", 27*24*time.Hour)
	frozen(t, w.opts.Config.Socket)
	r := w.examine()
	w.wants(r, "retention", Warn, "the daemon does not answer, so it is unknown", "restart the daemon")
	f := w.wants(r, "daemon", Fail, "does not answer", "`ccship service restart`")
	kit.Check(t, f.Safe && strings.Contains(f.Detail, w.opts.Config.Socket), "%+v", f)
	w.silent(r, "socket")
	w.told.st = service.Status{Manager: service.SystemdUser}
	kit.Check(t, !w.wants(w.examine(), "daemon", Fail, "does not answer", "restart it").Safe,
		"there is no service to restart")
}

// A server or a daemon that never answers, or a manager that ignores its limit, keeps nothing else unreported.
func TestEverythingHangs(t *testing.T) {
	w := newWorld(t)
	w.opts.patience = hangs
	end := make(chan struct{})
	defer close(end)
	w.serve(func(http.ResponseWriter, *http.Request) { <-end })
	frozen(t, w.opts.Config.Socket)
	w.opts.Service = &stuck{&w.told, end}
	r := w.examine()
	w.wants(r, "server", Fail, "does not answer", "check the address")
	for _, id := range []string{"service", "unit", "linger"} {
		w.wants(r, id, Warn, "did not finish in time", "")
	}
	w.silent(r, "state")
	w.silent(r, "key")
}

// stuck is a manager that never answers.
type stuck struct {
	*manager
	end chan struct{}
}

func (s *stuck) Status(context.Context) (service.Status, error) {
	<-s.end
	return service.Status{}, nil
}

func TestConfigAndKey(t *testing.T) {
	modes(t)
	w := synced(t)
	config, key := w.opts.Config.Path, w.opts.Config.APIKeyFile
	for _, c := range []struct {
		id, path, text string
		mode           os.FileMode
		level          Level
	}{
		{"config", config, "is readable by others", 0o644, Note},
		{"config", config, "is writable by others", 0o620, Warn},
		{"key", key, "is readable or writable by others (mode 0640)", 0o640, Fail},
	} {
		kit.Must(t, os.Chmod(c.path, c.mode))
		r := w.examine()
		w.wants(r, c.id, c.level, c.text, "`chmod 600 "+c.path+"`")
		w.fixed(r, c.id)
	}
	w.write(".config/ccship/api_key", "two keys\n", 0)
	r := w.examine()
	w.wants(r, "key", Fail, "exactly one key", "on one line")
	w.silent(r, "server") // it was shown none
	kit.Must(t, os.Remove(key))
	r = w.examine() // no key is no mistake in itself
	w.silent(r, "key")
	w.wants(r, "server", Fail, "requires a key", "key create")
	w.write(".config/ccship/config.toml", "server_url = \""+w.web.URL+"\"\napi_key_file = \"/nowhere/key\"\n", 0)
	w.load()
	w.wants(w.examine(), "key", Fail, "no such file", "chmod 600")
}

// A configuration that cannot be read does not end the examination, and nothing but files is touched because of it.
func TestBadConfig(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.write(".config/ccship/config.toml", "server_ulr = 1\n", 0)
	_, err := config.Load(nil, w.env)
	w.opts.ConfigErr = err
	w.told.current = false
	r := w.examine()
	w.wants(r, "config", Fail, "server_ulr", "ccship config --help")
	kit.Check(t, !w.wants(r, "unit", Warn, "differs from the one", "install").Safe, "a service is not touched")
	w.silent(r, "server")
	w.silent(r, "daemon")
	_, err = control.Dial(w.opts.Config.Socket).Reload(t.Context())
	kit.Check(t, err != nil, "the daemon takes it over")
	w.opts.ConfigErr = nil // someone else's configuration
	f := w.wants(w.examine(), "config", Warn, "not applied", "ccship config --help")
	kit.Check(t, strings.Contains(f.Detail, "keeps using"), "%+v", f)
}

func TestConfigNeedsRestart(t *testing.T) {
	w := newWorld(t)
	w.start()
	text := kit.Try(os.ReadFile(w.opts.Config.Path)).Must(t)
	w.write(".config/ccship/config.toml", string(text)+"line_cap = \"1MiB\"\n", 0)
	w.must(control.Dial(w.opts.Config.Socket).Reload(t.Context()))
	w.load()
	f := w.wants(w.examine(), "config", Warn, "restart needed for: line_cap", "`ccship service restart`")
	kit.Check(t, f.Safe, "not safe")
	w.opts.Config.Path = filepath.Join(w.home, "other.toml")
	found := of(w.examine(), "config")
	kit.Check(t, len(found) == 2 && strings.Contains(found[1].Text, "a different configuration"), "%+v", found)
}

func TestEnvironment(t *testing.T) {
	w := newWorld(t)
	env := func(name string) (string, bool) {
		if name == "CCSHIP_OUTBOX_CAP" {
			return "1GiB", true
		}
		return w.env(name)
	}
	c := kit.Try(config.Load(map[string]string{"log_level": "debug"}, env)).Must(t)
	w.opts.Config, w.opts.Env = c, env
	f := w.wants(w.examine(), "environment", Warn, "outbox_cap", "`ccship service install`")
	kit.Check(t, !strings.Contains(f.Text, "log_level"), "a flag is meant for this command only: %+v", f)
}

func TestShell(t *testing.T) {
	for word, want := range map[string]string{"/a/b-c.d": "/a/b-c.d", "": "''", "/a b": "'/a b'", "it's": `'it'\''s'`, "$x": "'$x'"} {
		got := control.ShellWord(word)
		kit.Check(t, got == want, "%q: %s", word, got)
	}
}

func TestState(t *testing.T) {
	modes(t)
	w := synced(t)
	path := filepath.Join(w.opts.Config.StateDir, "state.db")
	for what, mode := range map[string]os.FileMode{path: 0o600, w.opts.Config.StateDir: 0o700} {
		kit.Must(t, os.Chmod(what, mode|0o044))
		r := w.examine()
		w.wants(r, "state", Warn, "is readable by others", "`chmod ")
		w.fixed(r, "state")
	}
	aside := w.write(strings.TrimPrefix(path, w.home+"/")+".corrupt-20261121T000000Z", "x", 0)
	w.wants(w.examine(), "state", Note, "set aside", "check the disk")
	kit.Must(t, os.Remove(aside))
	w.opts.Config.StateDir = filepath.Join(w.home, "nowhere") // a daemon that keeps its state elsewhere
	w.wants(w.examine(), "state", Note, "elsewhere", "")
}

func TestDamagedState(t *testing.T) {
	w := newWorld(t)
	w.write(".local/state/ccship/state.db", strings.Repeat("no state at all ", 1024), 0)
	w.wants(w.examine(), "state", Fail, "damaged", "`ccship service start`")
	if runtime.GOOS != "windows" && os.Geteuid() != 0 {
		kit.Must(t, os.Chmod(filepath.Join(w.opts.Config.StateDir, "state.db"), 0))
		w.wants(w.examine(), "state", Fail, "permission denied", "readable")
	}
}

func TestDisk(t *testing.T) {
	w := newWorld(t)
	free := int64(1) << 62
	w.opts.Config.HeadRoom = free
	w.wants(w.examine(), "disk", Fail, "nearly full", "head_room")
	w.opts.Config.HeadRoom = 0
	w.opts.Config.StateDir = filepath.Join(w.home, "not", "made", "yet")
	w.silent(w.examine(), "disk")
}

func TestSocket(t *testing.T) {
	modes(t)
	w := newWorld(t)
	path := w.opts.Config.Socket
	w.told.st.Running, w.told.st.PID = false, 0
	t.Run("stale", func(t *testing.T) {
		w.t = t
		kit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		ln := kit.Try(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})).Must(t)
		ln.SetUnlinkOnClose(false) // as kill -9 leaves it
		_ = ln.Close()
		r := w.examine()
		w.wants(r, "socket", Warn, "a killed daemon left its socket behind", "`rm "+path+"`")
		w.told.do = func(string) error { return &control.Error{Message: "not now"} }
		fixes := ApplyFixes(context.Background(), r)
		kit.Check(t, len(fixes) == 2 && fixes[0].ID == "socket" && fixes[0].Done, "%+v", fixes)
		kit.Check(t, !exists(path), "it is still there")
	})
	t.Run("a file in its place", func(t *testing.T) {
		w.t = t
		w.write(strings.TrimPrefix(path, w.home+"/"), "mine", 0)
		defer os.Remove(path)
		r := w.examine()
		kit.Check(t, !w.wants(r, "socket", Fail, "is not a socket", "--socket").Safe, "what is not ours is not touched")
	})
	t.Run("open to others", func(t *testing.T) {
		w.t = t
		w.start()
		kit.Must(t, os.Chmod(path, 0o666))
		r := w.examine()
		w.wants(r, "socket", Warn, "is writable by others (mode 0666)", "`chmod 600 "+path+"`")
		w.fixed(r, "socket")
		kit.Must(t, os.Chmod(filepath.Dir(path), 0o777))
		r = w.examine()
		w.wants(r, "socket", Warn, "the folder of the control socket", "`chmod 700 ")
		w.fixed(r, "socket")
	})
}

// TestUnreadLines: transcripts with lines that hold no record are named, with what these lines are.
func TestUnreadLines(t *testing.T) {
	w := newWorld(t)
	w.write(".claude/projects/-p/bom.jsonl", "\xef\xbb\xbf"+`{"type":"mode"}`+"\n", time.Hour)
	w.silent(w.examine(), "records")
	w.write(".claude/projects/-p/torn.jsonl", `{"type":"mo`+"\n"+`{"type":"unfinished`, 2*time.Hour)
	w.wants(w.examine(), "records", Note, "1 transcript has lines that are delivered as they are, and not read: ", "")
	w.write(".claude/projects/-p/indented.jsonl", "{\n  \"type\": \"mode\"\n}\n"+`{"type":"mode"}`+"\n", time.Hour)
	w.wants(w.examine(), "records", Note, "indented.jsonl (3 lines: JSON, but no whole record), ", "jq")
	w.wants(w.examine(), "records", Note, "2 transcripts have lines that are delivered as they are, and not read: ", "jq")
	w.wants(w.examine(), "records", Note, "torn.jsonl (1 line: damaged line)", "jq")
}

// What transcripts have beyond what this version knows is counted, whatever surrounds it.
func TestUnknownRecords(t *testing.T) {
	w := newWorld(t)
	w.silent(w.examine(), "records")
	w.write(".claude/projects/-p/new.jsonl", `{"type":"novel","cwd":"/p"}`+"\n"+
		`{"type":"user","novelMember":1,"cwd":"/p","text":"`+strings.Repeat("x", 2*knownLine)+`"}`+"\n"+
		strings.Repeat(`{"type":"system","subtype":"novel"}`+"\n", 3)+"{}{}\n"+`{"type":"user","novelMember":1}`, time.Hour)
	w.wants(w.examine(), "records", Note, "system novel (3), member novelMember (1), type novel (1)", "newer")
}
