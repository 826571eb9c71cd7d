package history

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// line is a line of a file.
type line struct {
	number int // from 1
	text   string
}

// change is what a patch says of a file.
type change struct {
	path, old      string // "" of one that is not there
	added, removed []line
}

var hunkHead = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// changes reads a patch without context.
func changes(text string) (out []change) {
	var c *change
	var from, to, minus, plus int // the numbers of the next lines, and how many come
	for _, l := range strings.Split(text, "\n") {
		switch {
		case minus > 0 && strings.HasPrefix(l, "-"):
			c.removed = append(c.removed, line{from, l[1:]})
			from, minus = from+1, minus-1
		case plus > 0 && strings.HasPrefix(l, "+"):
			c.added = append(c.added, line{to, l[1:]})
			to, plus = to+1, plus-1
		case strings.HasPrefix(l, "diff --git "):
			out = append(out, change{})
			c, minus, plus = &out[len(out)-1], 0, 0
		case c == nil:
		case strings.HasPrefix(l, "--- "):
			c.old = pathIn(l[4:], "a/")
		case strings.HasPrefix(l, "+++ "):
			c.path = pathIn(l[4:], "b/")
		case strings.HasPrefix(l, "@@ "):
			if m := hunkHead.FindStringSubmatch(l); m != nil {
				from, minus, to, plus = number(m[1], 0), number(m[2], 1), number(m[3], 0), number(m[4], 1)
			}
		}
	}
	return out
}

func number(text string, otherwise int) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return otherwise
	}
	return n
}

// pathIn returns a path as git writes it in a patch; "" for /dev/null.
func pathIn(text, prefix string) string {
	text = strings.TrimRight(text, "\t\r") // git marks the end of a name that has spaces
	if strings.HasPrefix(text, `"`) {
		if plain, err := strconv.Unquote(text); err == nil {
			text = plain
		}
	}
	name, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return ""
	}
	return name
}

var generatedMark = regexp.MustCompile(`^(//|#|/\*|--|<!--).*(Code generated .*DO NOT EDIT|@generated)`)

// generated reports whether programs write a file: they lock versions, or the file says so.
func generated(c change) bool {
	name := path.Base(c.path)
	locks := []string{"go.sum", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock",
		"Cargo.lock", "poetry.lock", "uv.lock", "Pipfile.lock", "composer.lock", "Gemfile.lock", "mix.lock", "flake.lock"}
	if slices.Contains(locks, name) {
		return true
	}
	for _, end := range []string{".pb.go", "_pb2.py", ".min.js", ".min.css", ".snap", ".map"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return slices.ContainsFunc(c.added[:min(len(c.added), 20)],
		func(l line) bool { return generatedMark.MatchString(l.text) })
}
