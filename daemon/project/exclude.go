package project

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// IgnoreName is the file that keeps a folder and all folders below it on this machine. Only its name counts: ccship
// does not read it, and never makes one.
const IgnoreName = ".ccshipignore"

// rootExample is how an absolute path begins.
var rootExample = map[bool]string{false: "/", true: "a drive (C:/)"}[filepath.Separator == '\\']

// CheckPattern returns what is wrong with a folder pattern, in words for its author.
func CheckPattern(pattern string) error {
	switch {
	case pattern == "":
		return errors.New("the pattern is empty")
	case !doublestar.ValidatePattern(filepath.ToSlash(pattern)):
		return errors.New("the pattern is malformed: a bracket or brace is not closed, or a backslash escapes nothing")
	case !filepath.IsAbs(pattern) && !strings.HasPrefix(filepath.ToSlash(pattern), "**/"):
		return errors.New("the pattern must begin with " + rootExample + ", ~/ or **/")
	}
	return nil
}

// Literal returns the pattern that matches one folder, whatever characters its name has. Where backslashes are
// separators nothing can be escaped, so ? stands for a special character.
func Literal(dir string) string {
	odd := `*?[{}\`
	if filepath.Separator == '\\' {
		odd = "*?[{}"
	}
	var b strings.Builder
	for _, r := range filepath.ToSlash(dir) {
		switch {
		case !strings.ContainsRune(odd, r):
			b.WriteRune(r)
		case filepath.Separator == '\\':
			b.WriteByte('?')
		default:
			b.WriteString(`\` + string(r))
		}
	}
	return b.String()
}

// ExcludedBy returns the Why of a Policy that a pattern excludes.
func ExcludedBy(pattern string) string { return "excluded by exclude_projects: " + pattern }

// pattern is a glob for folders: as written, and in the form used for matching.
type pattern struct{ written, matched string }

type patterns []pattern

// newPatterns parses patterns that CheckPattern accepts. A pattern that names a folder by a link also matches the
// folder's real name.
func newPatterns(written []string) patterns {
	var all patterns
	for _, w := range written {
		all = append(all, pattern{w, matchable(w)})
		base, rest := doublestar.SplitPattern(matchable(w) + "/*") // so that all of a literal is its base
		if real, err := filepath.EvalSymlinks(filepath.FromSlash(base)); err == nil && matchable(real) != base {
			all = append(all, pattern{w, strings.TrimSuffix(matchable(Literal(real))+"/"+rest, "/*")})
		}
	}
	return all
}

// match returns the pattern that matches a folder or one above it; "" for none. It also tries the folder's name with
// links resolved, so that an exclusion holds whichever name a transcript uses.
func (p patterns) match(dir string) string {
	if len(p) == 0 {
		return ""
	}
	names := []string{dir}
	if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
		names = append(names, real)
	}
	for _, name := range names {
		for above := range upwards(name) {
			for _, one := range p {
				if doublestar.MatchUnvalidated(one.matched, matchable(above)) {
					return one.written
				}
			}
		}
	}
	return ""
}

// matchable returns a path or pattern with slashes, and in lower case where file systems usually ignore case.
func matchable(path string) string {
	path = filepath.ToSlash(path)
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		path = strings.ToLower(path)
	}
	return path
}

// ignored returns the marker file that keeps a folder here: in it or above it, up to home, or up to the root for
// folders outside of home. "" means none. An error means that it is not known.
func ignored(dir, home string) (string, error) {
	for above := range upwards(dir) {
		marker := filepath.Join(above, IgnoreName)
		_, err := os.Lstat(marker)
		switch {
		case err == nil:
			return marker, nil
		case !absent(err) && !errors.Is(err, fs.ErrPermission):
			return "", err
		}
		if above == home {
			break
		}
	}
	return "", nil
}
