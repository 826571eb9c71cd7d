package config

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
)

func TestEditList(t *testing.T) {
	const spread = "# mine\nexclude_projects = [ # all of them\n\t\"/a\", # first\n\t# a thought\n\t\"/b\" # no comma\n] # end\nhistory = true\n"
	for _, test := range []struct {
		name, before string
		add, remove  []string
		after        string
		edit         ListEdit
	}{
		{"new file", "", []string{"/a"}, nil, "exclude_projects = [\"/a\"]\n", ListEdit{Values: []string{"/a"}, Added: []string{"/a"}}},
		{"one line", "exclude_projects = [\"/a\"]\nhistory = true\n", []string{"/b"}, []string{"/a"}, "exclude_projects = [\"/b\"]\nhistory = true\n",
			ListEdit{Values: []string{"/b"}, Added: []string{"/b"}, Removed: []string{"/a"}}},
		{"add to lines", spread, []string{"/c", "/d"}, nil,
			"# mine\nexclude_projects = [ # all of them\n\t\"/a\", # first\n\t# a thought\n\t\"/b\", # no comma\n\t\"/c\",\n\t\"/d\",\n] # end\nhistory = true\n",
			ListEdit{Values: []string{"/a", "/b", "/c", "/d"}, Added: []string{"/c", "/d"}}},
		{"take from lines", spread, nil, []string{"/b"},
			"# mine\nexclude_projects = [ # all of them\n\t\"/a\", # first\n\t# a thought\n] # end\nhistory = true\n",
			ListEdit{Values: []string{"/a"}, Removed: []string{"/b"}}},
		{"empty the lines", spread, nil, []string{"/b", "/a"},
			"# mine\nexclude_projects = [ # all of them\n\t# a thought\n] # end\nhistory = true\n",
			ListEdit{Values: []string{}, Removed: []string{"/b", "/a"}}},
		{"two on a line", "exclude_projects = [\n\"/a\", \"/b\",\n\"/c\",\n]\n", nil, []string{"/a"}, "exclude_projects = [\"/b\", \"/c\"]\n",
			ListEdit{Values: []string{"/b", "/c"}, Removed: []string{"/a"}}},
		{"a hash in a name", "exclude_projects = [\n  \"/a#b\",\n]\n", []string{"/c"}, []string{"/a#b"}, "exclude_projects = [\n  \"/c\",\n]\n",
			ListEdit{Values: []string{"/c"}, Added: []string{"/c"}, Removed: []string{"/a#b"}}},
		{"the same twice", "exclude_projects = [\"~/a\"]\n", []string{"HOME/a"}, nil, "exclude_projects = [\"~/a\"]\n", ListEdit{Values: []string{"~/a"}}},
		{"by another spelling", "exclude_projects = [\"~/a\"]\n", nil, []string{"HOME/a"}, "exclude_projects = []\n", ListEdit{Values: []string{}, Removed: []string{"~/a"}}},
		{"not there", "# x\n", nil, []string{"/a"}, "# x\n", ListEdit{Missing: []string{"/a"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHome(t)
			path := filepath.Join(h.dir, "new", "config.toml")
			if test.before != "" {
				h.write("new/config.toml", test.before, 0o600)
			}
			for _, list := range [][]string{test.add, test.remove} {
				for i := range list {
					if rest, ok := cutHome(list[i]); ok {
						list[i] = filepath.ToSlash(h.env[HomeVariable]) + rest
					}
				}
			}
			edit, err := EditList(path, "exclude_projects", test.add, test.remove, h.lookup)
			diff := cmp.Diff(test.edit, edit)
			kit.Check(t, diff == "" && err == nil, "%v %s", err, diff)
			text, err := os.ReadFile(path)
			kit.Check(t, err == nil && string(text) == test.after, "%q %v, want %q", text, err, test.after)
		})
	}
}

func cutHome(text string) (rest string, ok bool) {
	if len(text) > 4 && text[:4] == "HOME" {
		return text[4:], true
	}
	return "", false
}

// A mistake leaves the file as it was.
func TestEditListRefuses(t *testing.T) {
	h := newHome(t)
	for _, test := range []struct{ before, key, value string }{
		{"", "exclude_projects", "relative/x"},
		{"", "exclude_projects", "/a["},
		{"", "exclude_projects", "~other/x"},
		{"", "server_url", "http://h"},
		{"", "exclude_project", "/a"},
		{"history = \n", "exclude_projects", "/a"},
		{"exclude_projects = [1]\n", "exclude_projects", "/a"},
	} {
		path := h.write("config.toml", test.before, 0o600)
		_, err := EditList(path, test.key, []string{test.value}, nil, h.lookup)
		e, ok := errors.AsType[*Error](err)
		kit.Check(t, ok && e.Hint != "", "%+v: %v is no Error with a hint", test, err)
		text, err := os.ReadFile(path)
		kit.Check(t, err == nil && string(text) == test.before, "%+v: file %q %v", test, text, err)
	}
}

// Patterns reach the daemon with the home expanded, from every source.
func TestExcludeProjects(t *testing.T) {
	h := newHome(t)
	path := h.write("config.toml", "exclude_projects = [\"~/a*\", \"**/b\", \"/c/\"]\n", 0o600)
	want := []string{filepath.ToSlash(h.env[HomeVariable]) + "/a*", "**/b", "/c/"}
	kit.Same(t, "ExcludeProjects", cmp.Diff(want, h.load(map[string]string{"config": path}).ExcludeProjects))
	h.env["CCSHIP_EXCLUDE_PROJECTS"] = "/x" + string(filepath.ListSeparator) + "**/y"
	kit.Same(t, "ExcludeProjects", cmp.Diff([]string{"/x", "**/y"}, h.load(map[string]string{"config": path}).ExcludeProjects))
}

var update = flag.Bool("update", false, "write the table of options in the documentation anew")

// TestDocumentedOptions: the table of docs/configuration.md has every option, its default and its meaning.
func TestDocumentedOptions(t *testing.T) {
	const begin, end = "<!-- options: written by `make docs` -->\n", "<!-- end -->\n"
	path := filepath.Join("..", "..", "docs", "configuration.md")
	page := kit.Try(os.ReadFile(path)).Must(t)
	before, rest, ok := strings.Cut(string(page), begin)
	table, after, ended := strings.Cut(rest, end)
	kit.Require(t, ok && ended, "%s has no table between %q and %q", path, begin, end)
	var b strings.Builder
	b.WriteString("| key | value; default | |\n|---|---|---|\n")
	for _, o := range Options() {
		given, doc := "", o.Doc
		if o.Default != "" {
			given = "; `" + o.Default + "`"
		}
		if !o.Live {
			doc += " Needs a restart."
		}
		fmt.Fprintf(&b, "| `%s` | %s%s | %s |\n", o.Name, strings.ReplaceAll(o.Type(), "|", "or"), given, doc)
	}
	if *update {
		kit.Must(t, os.WriteFile(path, []byte(before+begin+b.String()+end+after), 0o644))
		return
	}
	kit.Same(t, "the table of options is not that of the code; `make docs` writes it anew", cmp.Diff(table, b.String()))
}

func TestElsewhere(t *testing.T) {
	home := kit.Try(filepath.EvalSymlinks(t.TempDir())).Must(t)
	home = filepath.Join(home, "me [x]*") // no pattern
	env := map[string]string{
		"CLAUDE_CONFIG_DIR": filepath.Join(home, "a") + ", " + filepath.Join(home, "b"), "XDG_CONFIG_HOME": filepath.Join(home, "xdg"),
	}
	cowork := "local-agent-mode-sessions"
	want := map[string]int{
		".claude-work/projects": 1, ".claude/profiles/x/projects": 0, ".claude-profiles/y/projects": 1,
		".claude-profiles/z/.claude/projects": 1, ".config/claude/projects": 1, "xdg/claude/projects": 2, "a/projects": 1, "b/projects": 1,
		".config/Claude/" + cowork: 2, "Library/Application Support/Claude/" + cowork: 1, "AppData/Roaming/Claude/" + cowork: 1,
		"AppData/Local/Packages/Claude_pzs8/LocalCache/Roaming/Claude/" + cowork: 1, ".claude/profiles/w/projects": 1,
		".claude/profiles/v/.claude/projects": 1, "xdg/Claude/" + cowork: 1,
	}
	for rel, n := range want {
		for i := range n {
			below := "p"
			if filepath.Base(rel) == cowork {
				below = "org/account/" + []string{"local_1", "other"}[i] + "/.claude/projects/p"
			}
			put(t, filepath.Join(home, rel, below, string(rune('a'+i))+".jsonl"), "{}\n", 0, time.Now())
		}
	}
	put(t, filepath.Join(home, ".claude", "projects", "p", "a.jsonl"), "{}\n", 0, time.Now())         // a root
	put(t, filepath.Join(home, ".claude-old", "projects", "p", "a.jsonl"), "", 0, time.Now())         // no conversation yet
	put(t, filepath.Join(home, ".claude-own", "projects", "p", "a.jsonl"), "{}\n", 0, time.Now())     // below a root
	put(t, filepath.Join(home, ".claude-empty", "projects", "p", "note.md"), "text\n", 0, time.Now()) // none
	roots := []string{filepath.Join(home, ".claude", "projects"), filepath.Join(home, ".claude-own")}
	if runtime.GOOS != "windows" {
		kit.Must(t, os.Symlink(filepath.Join(home, ".claude"), filepath.Join(home, ".claude-link")))
	}
	for _, h := range elsewhere(home, func(name string) string { return env[name] }, roots) {
		rel := kit.Try(filepath.Rel(home, h.Path)).Must(t)
		rel = filepath.ToSlash(rel)
		kit.Check(t, h.Transcripts == want[rel], "%s: %d transcripts, want %d", rel, h.Transcripts, want[rel])
		delete(want, rel)
	}
	delete(want, ".claude/profiles/x/projects")
	kit.Check(t, len(want) == 0, "not found: %v", want)
}

// A log of the caller's is used as it is; one of text keeps to the level in force.
func TestLogger(t *testing.T) {
	var b bytes.Buffer
	own := slog.New(slog.DiscardHandler)
	kit.Check(t, (Config{Log: own}).Logger() == own, "the caller's log is not used")
	kit.Check(t, (Config{}).Logger() != nil, "no log without one")
	log := Config{LogLevel: slog.LevelWarn}.TextLog(&b)
	log.Info("quiet")
	log.Warn("loud", "file", "a b")
	text := b.String()
	kit.Check(t, !strings.Contains(text, "quiet") && strings.Contains(text, `level=WARN msg=loud file="a b"`), "log is %q", text)
}

func TestKnowsMarketplace(t *testing.T) {
	dir := t.TempDir()
	plugin := filepath.Join(dir, `a "b"`)
	kit.Check(t, !KnowsMarketplace(dir, plugin), "known without a file")
	known := filepath.Join(dir, "plugins", "known_marketplaces.json")
	put(t, known, `{"ccship":{"source":{"source":"directory","path":"`+filepath.ToSlash(dir)+`/a \"b\""}}}`, 0, time.Now())
	kit.Check(t, os.PathSeparator != '/' || KnowsMarketplace(dir, plugin), "not known")
	kit.Check(t, !KnowsMarketplace(dir, filepath.Join(dir, "a")), "part of the path of another is known")
}
