package config

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
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
