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

// IgnoreName is the file that keeps a folder and all below it on this machine. What is in it does not matter; ccship
// reads no more of it than its name, and never makes one.
const IgnoreName = ".ccshipignore"

// CheckPattern says what is wrong with a pattern of folders, for the person who wrote it.
func CheckPattern(pattern string) error {
	switch {
	case pattern == "":
		return errors.New("the pattern is empty")
	case !doublestar.ValidatePattern(filepath.ToSlash(pattern)):
		return errors.New("the pattern is malformed: a bracket, brace or backslash has no counterpart")
	case !filepath.IsAbs(pattern) && !strings.HasPrefix(filepath.ToSlash(pattern), "**/"):
		return errors.New("the pattern must begin with /, ~/ or **/")
	}
	return nil
}

// Literal is the pattern that matches one folder, whatever characters its name has. Where backslashes separate, none
// can escape: there an odd character is matched by any.
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

// ExcludedBy is the Why of a Policy that a pattern keeps here.
func ExcludedBy(pattern string) string { return "excluded by exclude_projects: " + pattern }

// pattern is a glob of folders, as it was written and as it is matched.
type pattern struct{ written, matched string }

type patterns []pattern

// newPatterns understands what CheckPattern passes. A folder that a pattern names by a link is meant by its own name
// too.
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

// match names the pattern that a folder or one above it matches, "" none. A folder is also known by the name that
// its links lead to: an exclusion is to hold whichever of its names a transcript says.
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

// matchable is a path or a pattern with slashes, and without case where the file system usually has none.
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

// ignored is the marker file that keeps a folder here: in it or above, up to home; for folders outside of home up to
// the root. "" is none. An error means that it cannot be told.
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
