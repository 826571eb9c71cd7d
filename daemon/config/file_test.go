package config

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestWriteOption(t *testing.T) {
	for _, test := range []struct {
		name, before, key string
		texts             []string
		after             string
	}{
		{"new file", "", "server_url", []string{"http://h:1"}, "server_url = \"http://h:1\"\n"},
		{"append", "# note", "history", []string{"0"}, "# note\nhistory = false\n"},
		{"keeps the rest", "# top\nlog_level = \"info\" # why\n\n# end\nhistory = true\n", "log_level", []string{"warn"}, "# top\nlog_level = \"warn\"\n\n# end\nhistory = true\n"},
		{"list over lines", "roots = [ # two\n  \"/a\",\n  \"/b\",\n]\nhistory = true\n", "roots", []string{"/c"}, "roots = [\"/c\"]\nhistory = true\n"},
		{"list of several", "", "exclude_types", []string{"a", "b \"c\""}, "exclude_types = [\"a\", \"b \\\"c\\\"\"]\n"},
		{"quoted key", "\"history\" = true\n", "history", []string{"false"}, "history = false\n"},
		{"number", "", "max_entries_per_request", []string{"50"}, "max_entries_per_request = 50\n"},
		{"backslashes", "", "socket", []string{`C:\x`}, "socket = 'C:\\x'\n"},
		{"size", "", "outbox_cap", []string{"1GiB"}, "outbox_cap = \"1GiB\"\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHome(t)
			path := filepath.Join(h.dir, "new", "config.toml")
			if test.before != "" {
				h.write("new/config.toml", test.before, 0o644)
			}
			kit.Must(t, WriteOption(path, test.key, test.texts, h.lookup))
			text, err := os.ReadFile(path)
			kit.Check(t, err == nil && string(text) == test.after, "%q %v, want %q", text, err, test.after)
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
				t.Errorf("mode %v %v", info.Mode(), err)
			}
		})
	}
}

// A mistake leaves the file as it was.
func TestWriteOptionRefuses(t *testing.T) {
	for _, test := range []struct {
		name, before, key string
		texts             []string
	}{
		{"unknown key", "", "server", []string{"x"}},
		{"bad value", "", "server_url", []string{"x"}},
		{"several for one", "", "watch", []string{"auto", "poll"}},
		{"broken file", "history = \n", "watch", []string{"poll"}},
		{"unknown key in the file", "hist = true\n", "watch", []string{"poll"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHome(t)
			path := h.write("config.toml", test.before, 0o600)
			err := WriteOption(path, test.key, test.texts, h.lookup)
			_, ok := errors.AsType[*Error](err)
			kit.Check(t, ok, "%v is no Error", err)
			text, err := os.ReadFile(path)
			kit.Check(t, err == nil && string(text) == test.before, "file %q %v", text, err)
		})
	}
}

// People keep their configuration in another place and link to it.
func TestWriteOptionFollowsLink(t *testing.T) {
	h := newHome(t)
	real := h.write("dotfiles/config.toml", "history = true\n", 0o600)
	link := filepath.Join(h.dir, "config.toml")
	if err := os.Symlink(real, link); err != nil {
		t.Skip("no links here: ", err)
	}
	kit.Must(t, WriteOption(link, "history", []string{"false"}, h.lookup))
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is gone: %v %v", info.Mode(), err)
	}
	text, err := os.ReadFile(real)
	kit.Check(t, err == nil && string(text) == "history = false\n", "%q %v", text, err)
}

// What `config show` prints is a configuration file that means the same.
func TestShowIsConfig(t *testing.T) {
	h := newHome(t)
	h.env["CCSHIP_SERVER_URL"] = "https://h/x"
	h.env["CCSHIP_EXCLUDE_TYPES"] = "a,b"
	h.env["CCSHIP_OUTBOX_CAP"] = "1.5GiB"
	first := h.load(nil)
	text := ""
	for _, v := range first.Values() {
		text += v.TOML() + "\n"
	}
	clean := newHome(t)
	second, err := Load(map[string]string{"config": clean.write("shown.toml", text, 0o600)}, clean.lookup)
	kit.Require(t, err == nil, "%v in\n%s", err, text)
	for i, v := range second.Values() {
		kit.Equal(t, "became", v.TOML(), first.Values()[i].TOML())
	}
}

func TestNormalizeURL(t *testing.T) {
	for text, want := range map[string]string{
		"http://localhost:5000":           "http://localhost:5000",
		"HTTP://LocalHost:80/":            "http://localhost",
		"https://h.example:443/base//":    "https://h.example/base",
		"https://h.example:8443/B%20c":    "https://h.example:8443/B%20c",
		"http://[::1]:5000/":              "http://[::1]:5000",
		"http://":                         "",
		"h:5000":                          "",
		"http://h:0":                      "",
		"http://h:99999":                  "",
		"http://u@h":                      "",
		"http://h?x=1":                    "",
		"http://h#x":                      "",
		"http://h h":                      "",
		"unix:///run/x":                   "unix:///run/x",
		"UNIX:///run/a b":                 "unix:///run/a%20b",
		"unix:///run/a%20b":               "unix:///run/a%20b",
		"unix://run/x":                    "",
		"unix:///run/../x":                "",
		"unix:///run/x/":                  "",
		"unix:///run/x?y":                 "",
		"unix:///":                        "",
		"unix:run/x":                      "",
		"http://h:5000/api/conversations": "http://h:5000",
		"http://h:5000/a//b/":             "http://h:5000/a/b",
		"http://h:5000/a/../b":            "http://h:5000/b",
	} {
		got, err := NormalizeURL(text)
		kit.Check(t, got == want && (err == nil) == (want != ""), "%q became %q, %v; want %q", text, got, err, want)
	}
}

// TestSalvage: what is next to a mistake is in force, and the mistake is named with its place.
func TestSalvage(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "config.toml")
	for name, test := range map[string]struct {
		text    string
		flags   map[string]string
		mistake string
	}{
		"none":              {text: "socket = \"/run/s\"\n"},
		"unknown key":       {text: "socket = \"/run/s\"\nsever_url = \"x\"\n", mistake: path + ":2: unknown key"},
		"bad value":         {text: "watch = \"now and then\"\nsocket = \"/run/s\"\n", mistake: path + ":1"},
		"other kind":        {text: "history = 7\nsocket = \"/run/s\"\n", mistake: path + ":1"},
		"no TOML":           {text: "server_url = http://x\nsocket = \"/run/s\"\n", mistake: path + ":1"},
		"no TOML, twice":    {text: "a b c\nsocket = \"/run/s\"\n= 3\n", mistake: path + ":1"},
		"a flag":            {text: "socket = \"/run/s\"\n", flags: map[string]string{"log_level": "loud"}, mistake: "--log-level"},
		"a flag for a path": {text: "socket = \"/run/s\"\n", flags: map[string]string{"socket": "~other/s"}, mistake: "home"},
	} {
		t.Run(name, func(t *testing.T) {
			kit.Must(t, os.WriteFile(path, []byte(test.text), 0o600))
			flags := map[string]string{"config": path}
			for k, v := range test.flags {
				flags[k] = v
			}
			c, err := Salvage(flags, kit.Only(HomeVariable, home))
			kit.Check(t, filepath.ToSlash(c.Socket) == "/run/s" && c.Path == path && c.Watch == "auto" && c.OutboxCap != 0,
				"%+v", c)
			kit.Check(t, (err == nil) == (test.mistake == "") && (err == nil || strings.Contains(err.Error(), test.mistake)),
				"error %v, want %q", err, test.mistake)
		})
	}
}

// TestSalvageNothing: with a file that is not there, the defaults are in force.
func TestSalvageNothing(t *testing.T) {
	home := t.TempDir()
	c, err := Salvage(map[string]string{"config": filepath.Join(home, "gone.toml")},
		kit.Only(HomeVariable, home))
	kit.Check(t, err != nil && c.Socket != "" && c.StateDir != "", "%+v, %v", c, err)
}

// What only flags and variables said is what a service would not know; written down, nothing of it is left.
func TestUnwritten(t *testing.T) {
	home := t.TempDir()
	vars := map[string]string{
		HomeVariable: home, "CLAUDE_CONFIG_DIR": filepath.Join(home, "cc"), "XDG_STATE_HOME": filepath.Join(home, "st"),
		"XDG_RUNTIME_DIR": filepath.Join(home, "run"), "CCSHIP_LOG_LEVEL": "debug", "CCSHIP_EXCLUDE_TYPES": "a,b", "CCSHIP_OUTBOX_CAP": "64MiB",
	}
	env := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	path := filepath.Join(home, "x", "my config.toml")
	kit.Must(t, replaceFile(path, []byte("# mine\nlog_level = \"warn\" # quiet\nhistory = false\n")))
	load := func(flags map[string]string) Config {
		t.Helper()
		flags["config"] = path
		return kit.Try(Load(flags, env)).Must(t)
	}
	c := load(map[string]string{"server_url": "http://localhost:1"})
	values, err := c.Unwritten(env)
	var names []string
	for _, v := range values {
		names = append(names, v.Name)
	}
	want := []string{"server_url", "roots", "state_dir", "log_level", "exclude_types", "outbox_cap"}
	if runtime.GOOS != "linux" { // no runtime folder is known to a service there
		want = slices.Insert(want, 3, "socket")
	}
	slices.Sort(want)
	if slices.Sort(names); err != nil || !slices.Equal(names, want) {
		t.Fatalf("%q %v, want %q", names, err, want)
	}
	kit.Must(t, WriteValues(path, values))
	text, err := os.ReadFile(path)
	kit.Check(t, err == nil && strings.HasPrefix(string(text), "# mine\n") && strings.Contains(string(text), "history = false\n"),
		"%v\n%s", err, text)
	values, err = load(map[string]string{}).Unwritten(env)
	kit.Check(t, err == nil && len(values) <= 0, "still unwritten: %v %v", values, err)
	kit.Gives(t, "named", path)(c.ServiceConfig(env))
	vars = map[string]string{HomeVariable: home}
	c = kit.Try(Load(nil, env)).Must(t)
	kit.Gives(t, "the default is named", "")(c.ServiceConfig(env))
}

// Server and key are kept together, or neither is.
func TestWriteServer(t *testing.T) {
	dir := t.TempDir()
	path, key := filepath.Join(dir, "c", "config.toml"), filepath.Join(dir, "k", "api_key")
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	server := []Value{{Name: "server_url", Value: "http://localhost:1"}}
	kit.Must(t, WriteServer(path, key, "one", server))
	if read(key) != "one\n" || read(path) != "server_url = \"http://localhost:1\"\n" {
		t.Errorf("%q %q", read(key), read(path))
	}
	for _, file := range []string{path, key} {
		for f, mode := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
			if info, err := os.Stat(f); err != nil || info.Mode().Perm() != mode && runtime.GOOS != "windows" {
				t.Errorf("%s: %v %v", f, info.Mode(), err)
			}
		}
	}
	kit.Must(t, os.WriteFile(path, []byte("broken = [\n"), 0o600))
	if err := WriteServer(path, key, "two", server); err == nil || read(key) != "one\n" || read(path) != "broken = [\n" {
		t.Errorf("%v: %q %q", err, read(key), read(path))
	}
	fresh := filepath.Join(dir, "fresh")
	if err := WriteServer(path, fresh, "two", server); err == nil || !strings.Contains(read(fresh), "no such file") && runtime.GOOS != "windows" {
		t.Errorf("%v: %q", err, read(fresh))
	}
	if err := WriteServer(filepath.Join(dir, "new.toml"), key, "", server); err != nil || read(key) != "one\n" {
		t.Errorf("without a key: %v %q", err, read(key))
	}
	err := WriteValues(path+"2", []Value{{Name: "bogus", Value: "x"}})
	kit.Check(t, err != nil && strings.Contains(err.Error(), "nearest"), "%v", err)
}
