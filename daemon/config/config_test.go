package config

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ccship/ccship/e2e/kit"
)

// home is a user's home folder with an environment that knows nothing else.
type home struct {
	t   *testing.T
	dir string
	env map[string]string
}

func newHome(t *testing.T) *home {
	dir := t.TempDir()
	return &home{t, dir, map[string]string{HomeVariable: dir, "XDG_CONFIG_HOME": filepath.Join(dir, ".config"), "XDG_STATE_HOME": filepath.Join(dir, ".local", "state")}}
}

func (h *home) lookup(name string) (string, bool) {
	v, ok := h.env[name]
	return v, ok
}

// write puts a file below the home and returns its path.
func (h *home) write(name, text string, mode os.FileMode) string {
	h.t.Helper()
	path := filepath.Join(h.dir, filepath.FromSlash(name))
	kit.WriteFile(h.t, path, text)
	kit.Must(h.t, os.Chmod(path, mode))
	return path
}

func (h *home) load(flags map[string]string) Config {
	h.t.Helper()
	return kit.Try(Load(flags, h.lookup)).Must(h.t)
}

func TestDefaults(t *testing.T) {
	h := newHome(t)
	in := func(parts ...string) string { return filepath.Join(append([]string{h.dir}, parts...)...) }
	want := Config{
		APIKeyFile: in(".config", "ccship", "api_key"), Roots: []string{in(".claude", "projects")},
		StateDir: in(".local", "state", "ccship"), Socket: in(".local", "state", "ccship", "ccship.sock"),
		LogLevel: slog.LevelInfo, Watch: "auto", Protocol: "auto", History: true, MaxEntriesPerRequest: 100,
		OutboxCap: 2 << 30, LineCap: 64 << 20, CompactAbove: 64 << 20,
		MessagesKept: 200, MessageInputLimit: 300, MessageOutputLimit: 500, Locale: "en", DocumentCap: 16 << 20, BlobCap: 64 << 20, Redact: "auto",
		Path: in(".config", "ccship", "config.toml"),
	}
	kit.Same(t, "loaded", cmp.Diff(want, h.load(nil), cmpopts.IgnoreUnexported(Config{})))
	if runtime.GOOS != "windows" {
		h.env["XDG_RUNTIME_DIR"] = in("run")
		kit.Equal(t, "socket with a runtime folder", h.load(nil).Socket, in("run", "ccship", "ccship.sock"))
		h.env["XDG_RUNTIME_DIR"] = "relative"
		kit.Equal(t, "socket with a runtime folder that is to be ignored", h.load(nil).Socket, want.Socket)
	}
}

// Flags win over the environment, that over the file, that over the defaults.
func TestPrecedence(t *testing.T) {
	h := newHome(t)
	file := h.write(".config/ccship/config.toml", "# mine\nlog_level = \"error\"\nserver_url = 'http://file'\nhistory = false\noutbox_cap = 4096\n", 0o600)
	h.env["CCSHIP_LOG_LEVEL"] = "warn"
	h.env["CCSHIP_SERVER_URL"] = "http://environment"
	h.env["CCSHIP_EXCLUDE_TYPES"] = "" // counts as not set
	c := h.load(map[string]string{"log_level": "debug"})
	kit.Check(t, c.LogLevel == slog.LevelDebug && c.ServerURL == "http://environment" && !c.History && c.OutboxCap == 4096 && c.LineCap == 64<<20,
		"%+v", c)
	want := map[string]Value{
		"log_level":    {"log_level", "debug", FromFlag, "--log-level"},
		"server_url":   {"server_url", "http://environment", FromEnvironment, "CCSHIP_SERVER_URL"},
		"history":      {"history", false, FromFile, file + ":4"},
		"outbox_cap":   {"outbox_cap", int64(4096), FromFile, file + ":5"},
		"line_cap":     {"line_cap", int64(64 << 20), FromDefault, ""},
		"roots":        {"roots", []string{filepath.Join(h.dir, ".claude", "projects")}, FromDefault, ""},
		"api_key_file": {"api_key_file", filepath.Join(h.dir, ".config", "ccship", "api_key"), FromDefault, ""},
	}
	for name, value := range want {
		got, err := c.Lookup(name)
		diff := cmp.Diff(value, got)
		kit.Check(t, diff == "" && err == nil, "%s: %v %s", name, err, diff)
	}
}

func TestRoots(t *testing.T) {
	h := newHome(t)
	in := func(parts ...string) string { return filepath.Join(append([]string{h.dir}, parts...)...) }
	for _, dir := range []string{in("work", "projects", "-p"), in("flat", "-p"), in("projects", "projects")} {
		kit.Must(t, os.MkdirAll(dir, 0o700))
	}
	for _, test := range []struct {
		name, roots, claude string
		want                []string
	}{
		{"defaults", "", "", []string{in(".claude", "projects")}},
		{"another Claude folder", "", in("c"), []string{in("c", "projects"), in(".claude", "projects")}},
		{"the same Claude folder", "", in(".claude"), []string{in(".claude", "projects")}},
		{"roots replace both", "~/flat", in("c"), []string{in("flat")}},
		{"Claude's folder means its projects", "~/work", "", []string{in("work", "projects")}},
		{"projects means itself", "~/projects", "", []string{in("projects")}},
		{"several", strings.Join([]string{"~/work", in("flat"), "~/later"}, string(filepath.ListSeparator)), "", []string{in("work", "projects"), in("flat"), in("later")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h.env["CCSHIP_ROOTS"], h.env["CLAUDE_CONFIG_DIR"] = test.roots, test.claude
			kit.Same(t, "Roots", cmp.Diff(test.want, h.load(nil).Roots))
		})
	}
}

func TestMistakes(t *testing.T) {
	for _, test := range []struct {
		name, file string
		env        map[string]string
		want       []string // parts of message or hint
	}{
		{"unknown key", "log_level = \"info\"\n\nserver_ulr = \"x\"\n", nil, []string{"config.toml:3", `"server_ulr"`, `"server_url"`}},
		{"unknown table", "[server]\nurl = \"x\"\n", nil, []string{"config.toml:1", `"server"`}},
		{"no TOML", "history = true\nlog_level = info\n", nil, []string{"config.toml:2"}},
		{"wrong type", "history = \"yes\"\n", nil, []string{"config.toml:1", "history", "true"}},
		{"list for a text", "server_url = [\"a\"]\n", nil, []string{"server_url takes a URL"}},
		{"number for a text", "socket = 7\n", nil, []string{"socket takes a path"}},
		{"bad URL", "\nserver_url = \"localhost:5000\"\n", nil, []string{"config.toml:2", "http://"}},
		{"bad URL in the environment", "", map[string]string{"CCSHIP_SERVER_URL": "ftp://x"}, []string{"CCSHIP_SERVER_URL", "ftp://x"}},
		{"key in the URL", "", map[string]string{"CCSHIP_SERVER_URL": "http://me:secret@x"}, []string{"API key file"}},
		{"bad size", "outbox_cap = \"many\"\n", nil, []string{"config.toml:1", "outbox_cap", "2GiB"}},
		{"negative size", "outbox_cap = -1\n", nil, []string{"outbox_cap"}},
		{"no entries", "max_entries_per_request = 0\n", nil, []string{"at least 1"}},
		{"more than is kept", "messages_kept = 1001\n", nil, []string{"1001 is more than the maximum 1000"}},
		{"bad choice", "watch = \"inotify\"\n", nil, []string{"auto, events, poll"}},
		{"bad level", "", map[string]string{"CCSHIP_LOG_LEVEL": "loud"}, []string{"CCSHIP_LOG_LEVEL", "debug, info, warn, error", "log_level takes: debug | "}},
		{"another user's home", "", map[string]string{"CCSHIP_STATE_DIR": "~root/x"}, []string{"CCSHIP_STATE_DIR", "in full"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHome(t)
			h.write(".config/ccship/config.toml", test.file, 0o600)
			for k, v := range test.env {
				h.env[k] = v
			}
			_, err := Load(nil, h.lookup)
			mistake, ok := errors.AsType[*Error](err)
			kit.Require(t, ok && mistake.Hint != "", "%#v is no Error with a hint", err)
			text := mistake.Message + " " + mistake.Hint
			for _, want := range test.want {
				kit.Check(t, strings.Contains(text, want), "%q does not say %q", text, want)
			}
			kit.Check(t, !strings.Contains(text, "secret"), "%q tells the password", text)
		})
	}
}

func TestConfigFile(t *testing.T) {
	h := newHome(t)
	missing := filepath.Join(h.dir, "missing.toml")
	_, err := Load(map[string]string{"config": missing}, h.lookup)
	kit.Check(t, err != nil, "a missing file that a flag names is no mistake")
	h.env["CCSHIP_CONFIG"] = missing
	c := h.load(nil)
	kit.Check(t, c.Path == missing, "path %s", c.Path)
	h.env["CCSHIP_CONFIG"] = h.dir
	_, err = Load(nil, h.lookup)
	kit.Check(t, err != nil, "a folder is read as a file")
}

func TestReadAPIKey(t *testing.T) {
	h := newHome(t)
	for _, test := range []struct {
		name, text string
		mode       os.FileMode
		key, want  string
	}{
		{"good", "ccs_abc\n", 0o600, "ccs_abc", ""},
		{"read-only", "ccs_abc", 0o400, "ccs_abc", ""},
		{"group may read", "ccs_abc\n", 0o640, "", "chmod 600"},
		{"others may read", "ccs_abc\n", 0o604, "", "chmod 600"},
		{"empty", " \n", 0o600, "", "is empty"},
		{"two lines", "a\nb\n", 0o600, "", "exactly one key"},
		{"a large file", strings.Repeat("k", maxKeyFile+1), 0o600, "", "exactly one key"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.want == "chmod 600" && runtime.GOOS == "windows" {
				t.Skip("Windows keeps this in access lists")
			}
			key, err := ReadAPIKey(h.write("keys/"+test.name, test.text, test.mode))
			text := ""
			if mistake, ok := errors.AsType[*Error](err); ok {
				text = mistake.Message + " " + mistake.Hint
			}
			kit.Check(t, key == test.key && strings.Contains(text, test.want) && (err == nil) == (test.want == ""),
				"%q %v, want %q and %q", key, err, test.key, test.want)
		})
	}
	_, err := ReadAPIKey(filepath.Join(h.dir, "none"))
	_, ok := errors.AsType[*Error](err)
	kit.Check(t, ok && errors.Is(err, os.ErrNotExist), "missing: %v", err)
	_, err = h.load(nil).APIKey()
	kit.Check(t, err == nil, "missing where nobody named it: %v", err)
	h.env["CCSHIP_API_KEY_FILE"] = filepath.Join(h.dir, "none")
	_, err = h.load(nil).APIKey()
	kit.Check(t, err != nil, "missing where someone named it: no error")
}

// The language is the one that is set, else that of the environment; a service's names none.
func TestLocale(t *testing.T) {
	for _, x := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "en"}, {map[string]string{"LANG": "ko_KR.UTF-8"}, "ko"}, {map[string]string{"LANG": "C.UTF-8"}, "en"},
		{map[string]string{"LC_ALL": "ko_KR.UTF-8", "LANG": "en_US.UTF-8"}, "ko"}, {map[string]string{"LC_ALL": "C", "LANG": "ko_KR.UTF-8"}, "en"},
		{map[string]string{"LANG": "ko_KR.UTF-8", "CCSHIP_LOCALE": "en"}, "en"}, {map[string]string{"CCSHIP_LOCALE": "ko"}, "ko"},
	} {
		h := newHome(t)
		c, err := Load(nil, func(name string) (string, bool) {
			if v, ok := x.env[name]; ok {
				return v, true
			}
			return h.lookup(name)
		})
		kit.Check(t, err == nil && c.Locale == x.want, "%v: %q, %v", x.env, c.Locale, err)
	}
}
