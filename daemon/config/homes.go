package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ccship/ccship/internal/sys"
)

// ClaudeHome is a folder with conversations: a projects folder, or one that holds some.
type ClaudeHome struct {
	Path        string // a root for the daemon
	Transcripts int    // of sessions in it
}

// inProjects matches the sessions' transcripts in a projects folder, inCowork those in the desktop program's folder for
// its local agents, each of which has a folder of Claude Code's own.
const (
	inProjects = "*/*.jsonl"
	inCowork   = "*/*/*/.claude/projects/*/*.jsonl"
)

// elsewhere lists the folders with conversations of which some lie below none of the roots: those of other profiles
// (CLAUDE_CONFIG_DIR in some other shell), of other programs' places for them, and of the desktop program. home is the
// user's, env looks up a variable.
func elsewhere(home string, env func(string) string, roots []string) (found []ClaudeHome) {
	var real []string
	for _, root := range roots {
		real = append(real, realPath(root))
	}
	seen := map[string]bool{}
	add := func(base, dirs, below string) {
		matches, _ := fs.Glob(os.DirFS(base), dirs) // only a bad pattern is an error
		for _, match := range matches {
			dir := realPath(filepath.Join(base, filepath.FromSlash(match)))
			if seen[dir] {
				continue
			}
			seen[dir] = true
			if n := outside(dir, below, real); n > 0 {
				found = append(found, ClaudeHome{dir, n})
			}
		}
	}
	for _, dirs := range []string{".claude*/projects", ".claude*/*/projects", ".claude*/*/*/projects",
		".claude*/*/*/.claude*/projects"} {
		add(home, dirs, inProjects)
	}
	// Claude Code takes all of CLAUDE_CONFIG_DIR as one folder; other programs separate several in it.
	separator := func(r rune) bool { return r == ',' || r == filepath.ListSeparator }
	for _, dir := range strings.FieldsFunc(env("CLAUDE_CONFIG_DIR"), separator) {
		add(strings.TrimSpace(dir), "projects", inProjects)
	}
	for _, base := range []string{filepath.Join(home, ".config"), env("XDG_CONFIG_HOME"), env("XDG_DATA_HOME"),
		filepath.Join(home, "Library", "Application Support"), env("APPDATA"), filepath.Join(home, "AppData", "Roaming")} {
		add(base, "claude*/projects", inProjects)
		add(base, "Claude*/local-agent-mode-sessions", inCowork)
	}
	for _, base := range []string{env("LOCALAPPDATA"), filepath.Join(home, "AppData", "Local")} {
		add(base, "Packages/Claude_*/LocalCache/Roaming/Claude*/local-agent-mode-sessions", inCowork)
	}
	return found
}

// outside counts the files below a folder that lie below none of the roots.
func outside(dir, pattern string, roots []string) (n int) {
	matches, _ := fs.Glob(os.DirFS(dir), pattern)
	for _, match := range matches {
		path := filepath.Join(dir, filepath.FromSlash(match))
		known := slices.ContainsFunc(roots, func(root string) bool { return sys.Within(root, path) })
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 && !known {
			n++
		}
	}
	return n
}

// realPath returns a path without symbolic links; the path itself where there is none.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
