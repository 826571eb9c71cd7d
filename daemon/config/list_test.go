package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

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
