//go:build unix

package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/ccship/ccship/e2e/kit"
)

// TestHouseArchitecture compares ARCHITECTURE.md with the tree: its table of packages names folders that exist, and every
// package; its table of functions names functions that exist.
func TestHouseArchitecture(t *testing.T) {
	text := kit.Try(os.ReadFile("../ARCHITECTURE.md")).Must(t)
	_, rest, _ := strings.Cut(string(text), "To follow it in the code:")
	stories, rest, _ := strings.Cut(rest, "## Where things are")
	rooms, _, _ := strings.Cut(rest, "\n## ")

	function := regexp.MustCompile("`([a-z0-9/-]+)\\.([A-Za-z]+)`")
	found := function.FindAllStringSubmatch(stories, -1)
	kit.Check(t, len(found) >= 10, "the page names %d functions", len(found))
	for _, m := range found {
		kit.Check(t, declares(t, m[1], m[2]), "ARCHITECTURE.md: %s has no function %s", m[1], m[2])
	}

	named, rows := map[string]bool{}, 0
	for line := range strings.Lines(rooms) {
		if cells := strings.Split(line, "|"); len(cells) == 4 && strings.HasPrefix(line, "| `") {
			rows++
			nameRooms(t, named, cells[1], cells[2])
		}
	}
	kit.Check(t, rows >= 20 && rows <= 32, "the table of packages has %d rows", rows)
	for room := range house().Arrows {
		above := path.Dir(room)
		if !named[room] && !(strings.Contains(above, "/") && named[above]) && !strings.HasPrefix(room, "e2e/") &&
			!strings.HasPrefix(room, "packaging/") && !strings.HasSuffix(room, "test") {
			t.Errorf("ARCHITECTURE.md does not name %s", room)
		}
	}
}

// declares reports whether a folder has a function or method of this name.
func declares(t *testing.T, folder, name string) bool {
	t.Helper()
	files := kit.Try(filepath.Glob(filepath.Join("..", folder, "*.go"))).Must(t)
	declaration := regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + name + `\(`)
	for _, file := range files {
		text := kit.Try(os.ReadFile(file)).Must(t)
		if declaration.Match(text) {
			return true
		}
	}
	return false
}

// nameRooms adds the packages that a row names. The first name is a path; the others are below or next to it, or paths.
func nameRooms(t *testing.T, named map[string]bool, cell, about string) {
	t.Helper()
	quoted := regexp.MustCompile("`([a-z0-9/-]+)`")
	first := ""
	for i, m := range quoted.FindAllStringSubmatch(cell+about, -1) {
		if first == "" {
			first = m[1]
		}
		exists := false
		for _, room := range []string{m[1], path.Join(first, m[1]), path.Join(path.Dir(first), m[1])} {
			if info, err := os.Stat(filepath.Join("..", room)); err == nil && info.IsDir() {
				named[room], exists = true, true
			}
		}
		kit.Check(t, exists || i >= strings.Count(cell, "`")/2, "ARCHITECTURE.md names %s, and there is no such folder", m[1])
	}
}

// TestHousePathsInPages: every path, or function of a package, that a page for maintainers names is there.
func TestHousePathsInPages(t *testing.T) {
	pages := kit.Try(filepath.Glob("../*.md")).Must(t)
	for _, pattern := range []string{"../docs/internals/*.md", "../docs/internals/adr/*.md"} {
		more := kit.Try(filepath.Glob(pattern)).Must(t)
		pages = append(pages, more...)
	}
	named := regexp.MustCompile("`((cmd|daemon|e2e|internal|lab|outbox|packaging|server|state|tail|transcript)/[a-zA-Z0-9_./-]+)`")
	count := 0
	for _, page := range pages {
		text := kit.Try(os.ReadFile(page)).Must(t)
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			count++
			if _, err := os.Stat(filepath.Join("..", m[1])); err == nil {
				continue
			}
			folder, name, ok := strings.Cut(m[1], ".")
			kit.Check(t, ok && declares(t, folder, name), "%s names %s, and it is not there", filepath.Base(page), m[1])
		}
	}
	kit.Check(t, count >= 20, "only %d paths were found", count)
}

// TestHouseTargets: every package and every test that the Makefile or a workflow names is there. `go test -run` of a
// name that is gone passes, and tests nothing.
func TestHouseTargets(t *testing.T) {
	named := 0
	folder := regexp.MustCompile(` \./([a-z0-9/-]+[a-z0-9])(/\.\.\.)?`)
	test := regexp.MustCompile(`\bTest[A-Z][A-Za-z]+`)
	tests := everyTest(t)
	files := kit.Try(filepath.Glob("../.github/workflows/*.yml")).Must(t)
	for _, file := range append(files, "../Makefile") {
		text := kit.Try(os.ReadFile(file)).Must(t)
		for _, m := range folder.FindAllStringSubmatch(string(text), -1) {
			named++
			_, err := os.Stat(filepath.Join("..", m[1]))
			kit.Check(t, err == nil, "%s names ./%s, and there is no such folder", filepath.Base(file), m[1])
		}
		for _, name := range test.FindAllString(string(text), -1) {
			named++
			kit.Check(t, strings.Contains(tests, "func "+name),
				"%s names %s, and there is no such test", filepath.Base(file), name)
		}
	}
	kit.Check(t, named >= 20, "only %d were found", named)
}

// everyTest returns the lines of all test files that declare a test.
func everyTest(t *testing.T) string {
	t.Helper()
	var declared strings.Builder
	must(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "func Test") {
				declared.WriteString(line)
			}
		}
		return err
	}))
	return declared.String()
}

// What one must know of a program: its commands without subcommands, but for help and completion, and the flags that each
// command lists as its own.
const (
	mostCommands       = 46 // of ccship
	mostServerCommands = 26
	mostFlags          = 200 // of both
	mostOnFirstPage    = 12
)

// surface is what a program lists in its help.
type surface struct{ commands, flags []string }

var (
	commandRow = regexp.MustCompile(`^  ([a-z][a-z-]*) `)
	flagRow    = regexp.MustCompile(`^ +(?:-\w, )?(--[a-z][a-z0-9-]*)`)
)

// walk reads the help of a command and of all below it.
func (s *surface) walk(t *testing.T, program string, path ...string) {
	t.Helper()
	args := append(slices.Clone(path), "--help")
	if len(path) == 0 {
		args = []string{"help", "all"}
	}
	out, err := exec.Command(program, args...).Output()
	kit.Require(t, err == nil, "%s %q: %v", program, args, err)
	section, below := "", []string{}
	for line := range strings.Lines(string(out)) {
		if line[0] != ' ' && line != "\n" {
			section = strings.ToLower(strings.TrimSpace(line))
		}
		command, flag := commandRow.FindStringSubmatch(line), flagRow.FindStringSubmatch(line)
		switch {
		case strings.HasSuffix(section, "commands:") && command != nil && command[1] != "help" && command[1] != "completion":
			below = append(below, command[1])
		case section == "flags:" && flag != nil && flag[1] != "--help":
			s.flags = append(s.flags, strings.Join(append(slices.Clone(path), flag[1]), " "))
		}
	}
	if len(below) == 0 {
		s.commands = append(s.commands, strings.Join(path, " "))
	}
	for _, name := range below {
		s.walk(t, program, append(slices.Clone(path), name)...)
	}
}

// TestBudget counts commands and flags as --help lists them. A new one takes the place of another.
func TestBudget(t *testing.T) {
	t.Parallel()
	var daemon, server surface
	daemon.walk(t, kit.Program(t, "ccship"))
	server.walk(t, kit.Program(t, "ccship-server"))
	for _, c := range []struct {
		what  string
		found []string
		most  int
	}{
		{"commands of ccship", daemon.commands, mostCommands},
		{"commands of ccship-server", server.commands, mostServerCommands},
		{"flags of both", slices.Concat(daemon.flags, server.flags), mostFlags},
	} {
		kit.Check(t, len(c.found) <= c.most && len(c.found) >= c.most/2,
			"%d %s, at most %d: %q", len(c.found), c.what, c.most, c.found)
	}
	page := kit.Try(exec.Command(kit.Program(t, "ccship"), "--help").Output()).Must(t)
	n := len(regexp.MustCompile(`(?m)^  [a-z]+( all)?  +\S`).FindAll(page, -1))
	kit.Check(t, n <= mostOnFirstPage && n >= 10, "the first page has %d commands, at most %d:\n%s", n, mostOnFirstPage, page)
}

// TestHouseWorkflows: what others wrote runs in workflows at one commit, and never sees the key that releases are
// signed with.
func TestHouseWorkflows(t *testing.T) {
	files, err := filepath.Glob("../.github/workflows/*.yml")
	kit.Require(t, err == nil && len(files) != 0, "%v %v", files, err)
	pinned := regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40}$`)
	for _, file := range files {
		text := kit.Try(os.ReadFile(file)).Must(t)
		var w struct {
			Env  map[string]string
			Jobs map[string]struct {
				Uses  string
				Env   map[string]string
				Steps []map[string]any
			}
		}
		must(t, yaml.Unmarshal(text, &w))
		hasKey := func(v any) bool {
			b, err := yaml.Marshal(v)
			return err != nil || strings.Contains(string(b), "RELEASE_KEY")
		}
		for name, job := range w.Jobs {
			kit.Check(t, job.Uses == "" && !hasKey(w.Env) && !hasKey(job.Env),
				"%s, %s: runs another workflow, or all its steps have the key", file, name)
			for _, step := range job.Steps {
				uses, is := step["uses"].(string)
				kit.Check(t, !is || pinned.MatchString(uses) && !hasKey(step),
					"%s, %s: %s is at no commit, or has the key", file, name, uses)
			}
		}
	}
}
