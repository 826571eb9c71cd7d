package library

import (
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/ccship/ccship/transcript"
)

// worktrees are where Claude Code, and by habit people, put a repository's worktrees, below it.
var worktrees = []string{"/.claude/worktrees/", "/.worktrees/"}

// structural are the members of a record that name its working directory. No other text is ever changed.
var structural = []string{"cwd", "relocatedCwd"}

// move maps working directories of the machine that a session comes from to this one.
type move struct {
	pairs []pair // the longest old folder first
}

// pair is a folder there, and what it is here.
type pair struct{ old, now string }

// newMove maps the folder old, and for one in a worktree its repository too, to now: a user who resumes a session in a
// folder means that folder.
func newMove(old, now string) move {
	separators := "/"
	if isWindows(old) {
		separators = `\/`
	}
	old = strings.TrimRight(old, separators)
	if old == "" {
		return move{}
	}
	m := move{[]pair{{old, now}}}
	for _, place := range worktrees {
		if i := strings.Index(slashed(old), place); i > 0 {
			m.pairs = append(m.pairs, pair{old[:i], now})
			break
		}
	}
	return m
}

// to returns where a working directory is here. One outside the mapped folders stays as it is.
func (m move) to(cwd string) string {
	for _, p := range m.pairs {
		if rest, ok := inside(cwd, p.old); ok {
			if isWindows(p.old) != isWindows(p.now) {
				rest = strings.NewReplacer(`\`, string(filepath.Separator), "/", string(filepath.Separator)).Replace(rest)
			}
			return p.now + rest
		}
	}
	return cwd
}

// line returns a record with its working directories mapped. A damaged line is left as it is.
func (m move) line(line []byte) []byte {
	if len(m.pairs) == 0 || transcript.Scan(line).Shape != transcript.Object {
		return line
	}
	return transcript.ReplaceStrings(line, structural, m.to)
}

// neutral returns a record without its working directories, to compare copies that were moved.
func neutral(line []byte) []byte {
	if transcript.Scan(line).Shape != transcript.Object {
		return line
	}
	return transcript.ReplaceStrings(line, structural, func(string) string { return "" })
}

// inside says whether a path is folder or below it, and what follows folder in it. Windows ignores case.
func inside(path, folder string) (rest string, ok bool) {
	if len(path) < len(folder) {
		return "", false
	}
	begin, rest := path[:len(folder)], path[len(folder):]
	same := begin == folder || isWindows(folder) && strings.EqualFold(slashed(begin), slashed(folder))
	return rest, same && (rest == "" || rest[0] == '/' || isWindows(folder) && rest[0] == '\\')
}

// isWindows says whether a path is one of Windows: C:\… or \\server\….
func isWindows(path string) bool {
	return strings.HasPrefix(path, `\\`) ||
		len(path) > 2 && path[1] == ':' && (path[2] == '\\' || path[2] == '/') && unicode.IsLetter(rune(path[0]))
}

func slashed(path string) string {
	if isWindows(path) {
		return strings.ReplaceAll(path, `\`, "/")
	}
	return path
}

// longestFolder is how long a project folder's name may be before Claude Code shortens it and appends a hash.
const longestFolder = 200

// folderName returns the name that Claude Code gives the project folder of a working directory. ok is false if it
// cannot be shown: for a long path, and for characters that Unicode can compose.
func folderName(cwd string) (name string, ok bool) {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(cwd)) {
		if r := rune(unit); r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			b.WriteRune(r)
		} else {
			b.WriteByte('-')
		}
	}
	composed := strings.ContainsFunc(cwd, func(r rune) bool { return unicode.Is(unicode.M, r) })
	return b.String(), b.Len() <= longestFolder && !composed
}
