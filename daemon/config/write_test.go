package config

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

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
