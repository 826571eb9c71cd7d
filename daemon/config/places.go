package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/internal/sys"
)

// HomeVariable is the environment variable that names the home folder.
const HomeVariable = sys.HomeVariable

// pattern expands ~ and checks a pattern of folders.
func pattern(p sys.Places, text string) (string, error) {
	if text == "~" || strings.HasPrefix(text, "~/") || strings.HasPrefix(text, `~\`) && filepath.Separator == '\\' {
		text = project.Literal(p.Home) + filepath.ToSlash(text[1:])
	}
	if err := project.CheckPattern(text); err != nil {
		return "", &Error{Message: quote(text) + ": " + err.Error(),
			Hint: "write a folder in full, or a pattern such as ~/clients/* or **/private"}
	}
	return text, nil
}

// OwnFolders returns the existing folders that hold only files of ccship and its server, links resolved, together with
// their subfolders that hold secrets.
func (c *Config) OwnFolders() (dirs []string) {
	all := []string{c.StateDir}
	if up := filepath.Dir(c.StateDir); filepath.Base(up) == "up" {
		all = append(all, up) // a daemon of `ccship up` has its state next to the server's
	}
	if p, err := sys.FindPlaces(c.env); err == nil {
		all = append(all, p.Config, p.State, filepath.Join(filepath.Dir(p.State), "ccship-server"),
			filepath.Join(p.Home, ".local", "state", "ccship-server"))
	}
	for _, dir := range all {
		for _, below := range []string{"", "up", filepath.Join("up", "state")} {
			if real, err := filepath.EvalSymlinks(filepath.Join(dir, below)); err == nil {
				dirs = append(dirs, real)
			}
		}
	}
	return dirs
}

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
		for _, match := range matching(base, dirs) {
			dir := realPath(match)
			if seen[dir] || slices.ContainsFunc(real, func(root string) bool { return sys.Within(root, dir) }) {
				continue
			}
			seen[dir] = true
			if n := outside(dir, below, real); n > 0 {
				found = append(found, ClaudeHome{dir, n})
			}
		}
	}
	dirs := matching(home, ".claude*")
	for _, next := range []string{"*", "*", ".claude*", ""} { // nothing below the last
		var below []string
		for _, dir := range dirs {
			add(dir, "projects", inProjects)
			if !slices.ContainsFunc(roots, func(root string) bool { return sys.Within(root, dir) }) { // they may be large
				below = append(below, matching(dir, next)...)
			}
		}
		dirs = below
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

// matching returns the paths below a folder that match a pattern.
func matching(dir, pattern string) []string {
	matches, _ := fs.Glob(os.DirFS(dir), pattern) // only a bad pattern is an error
	for i, match := range matches {
		matches[i] = filepath.Join(dir, filepath.FromSlash(match))
	}
	return matches
}

// outside counts the files below a folder that lie below none of the roots.
func outside(dir, pattern string, roots []string) (n int) {
	for _, path := range matching(dir, pattern) {
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

// maxKeyFile is larger than any key, in bytes; a larger file was named by mistake.
const maxKeyFile = 16 << 10

// ReadAPIKey reads the key for a server. Only the owner may be able to read the file (on Windows access lists decide
// that, which are not checked), and it must hold the key on one line. The error is a *Error, and fs.ErrNotExist when
// the file is missing.
func ReadAPIKey(path string) (string, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // opening a pipe could block forever
		return "", notKeyFile(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", &Error{
			Message: fmt.Sprintf("read API key: %v", err),
			Hint:    "write the key into that file and `chmod 600` it, or name another one with api_key_file",
			Cause:   err,
		}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", &Error{Message: fmt.Sprintf("read API key: %v", err),
			Hint: "name a file that can be read with api_key_file", Cause: err}
	}
	if !info.Mode().IsRegular() {
		return "", notKeyFile(path)
	}
	if !othersKeepOut(info.Mode()) {
		return "", &Error{
			Message: fmt.Sprintf("API key file %s is readable or writable by others (mode %04o)", path, info.Mode().Perm()),
			Hint:    "`chmod 600 " + path + "`",
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return "", &Error{Message: fmt.Sprintf("read API key: %v", err),
			Hint: "name a file that can be read with api_key_file", Cause: err}
	}
	return CheckAPIKey("API key file "+path, string(text))
}

// APIKey reads the key file with the key for the user's own server. It is "" when the file of the default name is
// missing, for a server without keys; a missing file that was named explicitly is an error. See ReadAPIKey.
func (c Config) APIKey() (string, error) {
	key, err := ReadAPIKey(c.APIKeyFile)
	if errors.Is(err, fs.ErrNotExist) && c.OriginOf("api_key_file") == FromDefault {
		return "", nil
	}
	return key, err
}

// othersKeepOut reports whether only its owner may use a file.
func othersKeepOut(mode fs.FileMode) bool { return mode.Perm()&0o077 == 0 || runtime.GOOS == "windows" }

func notKeyFile(path string) error {
	return &Error{Message: fmt.Sprintf("read API key: %s is not a file", path),
		Hint: "api_key_file names the file that holds the key"}
}

// CheckAPIKey returns the key in a text that must hold nothing else. where names the text in the error, which is a
// *Error.
func CheckAPIKey(where, text string) (string, error) {
	key := strings.TrimSpace(text)
	switch {
	case key == "":
		return "", &Error{Message: where + " is empty", Hint: "write the server's key into it, on one line"}
	case len(text) > maxKeyFile || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", &Error{Message: where + " does not hold exactly one key",
			Hint: "write the server's key into it, on one line"}
	}
	return key, nil
}

// KnowsMarketplace says whether the folder dir is one of the plugin marketplaces that Claude Code knows, by the files
// in its folder (~/.claude).
func KnowsMarketplace(configDir, dir string) bool {
	quoted, err := json.Marshal(dir)
	if err != nil {
		return false
	}
	known, err := os.ReadFile(filepath.Join(configDir, "plugins", "known_marketplaces.json"))
	return err == nil && bytes.Contains(known, quoted)
}

// ListEdit is the result of EditList. Values are as written in the file.
type ListEdit struct {
	Values  []string // of the list now
	Added   []string
	Removed []string
	Missing []string // values to remove that are not in the list
}

// EditList adds values to a list in a configuration file and removes others. Values with the same meaning are equal.
// Everything else in the file stays, including comments between the values. A list that does not change is not written.
// For errors see WriteOption.
func EditList(path, name string, add, remove []string, env Env) (ListEdit, error) {
	o, ok := LookupOption(name)
	if !ok || !o.List() {
		return ListEdit{}, unknownOption(name, "")
	}
	p, err := sys.FindPlaces(env)
	if err != nil {
		return ListEdit{}, err
	}
	for _, text := range slices.Concat(add, remove) {
		if _, err := parse(o, text, p); err != nil {
			return ListEdit{}, setting{provenance: provenance{FromFlag, name}}.blame(o, err)
		}
	}
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ListEdit{}, fmt.Errorf("read configuration: %w", err)
	}
	settings, err := parseFile(path, old)
	if err != nil {
		return ListEdit{}, err
	}
	e := ListEdit{Values: slices.Clone(settings[name].texts)}
	e.apply(add, remove, func(a, b string) bool { return sameValue(o, a, b, p) })
	if len(e.Added)+len(e.Removed) == 0 {
		return e, nil
	}
	text := e.rewrite(string(old), o)
	if err := replaceFile(path, []byte(text)); err != nil {
		return e, err
	}
	return e, nil
}

// sameValue reports whether two texts mean the same.
func sameValue(o Option, a, b string, p sys.Places) bool {
	x, errX := parse(o, a, p)
	y, errY := parse(o, b, p)
	return errX == nil && errY == nil && x == y
}

func (e *ListEdit) apply(add, remove []string, same func(a, b string) bool) {
	for _, text := range remove {
		is := func(v string) bool { return same(v, text) }
		if i := slices.IndexFunc(e.Values, is); i < 0 {
			e.Missing = append(e.Missing, text)
		} else {
			e.Removed = append(e.Removed, e.Values[i])
			e.Values = slices.DeleteFunc(e.Values, is)
		}
	}
	for _, text := range add {
		if !slices.ContainsFunc(e.Values, func(v string) bool { return same(v, text) }) {
			e.Added, e.Values = append(e.Added, text), append(e.Values, text)
		}
	}
}

// rewrite returns the file's text with the new list: edited in place if each value has its own line, otherwise
// rewritten.
func (e *ListEdit) rewrite(text string, o Option) string {
	lines := strings.SplitAfter(text, "\n")
	if from, to, found := spanOf(lines, o.Name); found && to-from > 2 {
		edited := strings.Join(slices.Concat(lines[:from], e.lines(lines[from:to]), lines[to:]), "")
		if settings, err := parseFile("", []byte(edited)); err == nil && slices.Equal(settings[o.Name].texts, e.Values) {
			return edited
		}
	}
	return replaceKey(text, o.Name, o.Name+" = "+tomlList(e.Values)+"\n")
}

// lines edits a list that is written over several lines.
func (e *ListEdit) lines(list []string) []string {
	item := regexp.MustCompile(`^([ \t]*)("(?:[^"\\]|\\.)*"|'[^']*')[ \t]*(,?)[ \t]*(#.*)?\r?\n$`)
	out, last, indent := []string{}, -1, "  "
	for _, line := range list {
		m := item.FindStringSubmatch(line)
		if m == nil {
			out = append(out, line)
			continue
		}
		var v struct{ K string }
		if _, err := toml.Decode("K = "+m[2], &v); err == nil && slices.Contains(e.Removed, v.K) {
			continue
		}
		indent, last = m[1], len(out)
		out = append(out, line)
	}
	if last >= 0 {
		if m := item.FindStringSubmatchIndex(out[last]); m[6] == m[7] { // without its comma
			out[last] = out[last][:m[5]] + "," + out[last][m[5]:]
		}
	}
	var added []string
	for _, text := range e.Added {
		added = append(added, indent+tomlString(text)+",\n")
	}
	return slices.Insert(out, max(last+1, 1), added...)
}

// FolderPattern returns the pattern of exclude_projects that matches one folder, whatever characters its name has.
func FolderPattern(dir string) string { return project.Literal(dir) }
