//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestThreatModel: every test that a line of the threat model names is there.
func TestThreatModel(t *testing.T) {
	text := kit.Try(os.ReadFile("../SECURITY.md")).Must(t)
	_, table, _ := strings.Cut(string(text), "## Threat model")
	table, _, _ = strings.Cut(table, "\n## ")
	namesTests(t, table)
}

// TestClaims: every line of the page of claims names a test, and it is there.
func TestClaims(t *testing.T) {
	text := kit.Try(os.ReadFile("../docs/internals/claims.md")).Must(t)
	kit.Equal(t, "lines that name tests", namesTests(t, string(text)), strings.Count(string(text), "\n- "))
}

// namesTests demands that the tests which the items of a list name are there, and returns how many items do.
func namesTests(t *testing.T, list string) (rows int) {
	t.Helper()
	for _, item := range strings.Split("\n"+list, "\n- ")[1:] {
		line, _, _ := strings.Cut(item, "\n\n")
		dir, named := "", false
		for _, word := range regexp.MustCompile("`[^` ]+`|\\b(Test|Fuzz)[A-Za-z0-9]+").FindAllString(line, -1) {
			if strings.HasPrefix(word, "`") {
				dir = strings.Trim(word, "`")
				continue
			}
			if named = true; !hasTest(t, filepath.Join("..", filepath.FromSlash(dir)), word) {
				t.Errorf("there is no %s in %s: %s", word, dir, line)
			}
		}
		if named {
			rows++
		}
	}
	kit.Check(t, rows >= 20, "%d lines name tests", rows)
	return rows
}

// TestFigures: the figures of README, and ccship's among those that are compared, are on the page of results, and each
// section there names the command that makes them.
func TestFigures(t *testing.T) {
	read := func(name string) string { return string(kit.Try(os.ReadFile(filepath.Join("..", name))).Must(t)) }
	results, rows := read("docs/internals/benchmarks.md"), read("lab/rows.go")
	_, table, _ := strings.Cut(read("README.md"), "\n## Figures\n")
	table, _, _ = strings.Cut(table, "\n## ")
	table += regexp.MustCompile(`(?m)^\| line → there \|.*\n`).FindString(read("docs/comparison.md"))
	different := figuresMissing(table, results)
	kit.Check(t, len(different) == 0, "figures of README that benchmarks.md does not have: %q", different)
	for _, change := range []string{"0.041", "3.9 ms", "57 KB", "40 ms (p99", "≤ 131 KB", "0.74 of raw", "97.8", "700 shapes"} {
		other := strings.ReplaceAll(results, change, "7")
		kit.Check(t, other != results, "the results do not have %q", change)
		kit.Check(t, len(figuresMissing(table, other)) > 0, "%q is another one, and nobody sees it", change)
	}
	for _, change := range []string{"300 MiB", "10 000 files", "14 places", "1–10 GB", "19 MB", "28 MiB", "1.8–3.9"} {
		other := strings.ReplaceAll(table, change, "7777")
		kit.Check(t, len(figuresMissing(other, results)) > 0, "%q is another one in README, and nobody sees it", change)
	}
	command := regexp.MustCompile("`lab ([a-z-]+).*?`")
	for _, section := range strings.Split(results, "\n## ")[1:] {
		named := command.FindAllStringSubmatch(section, -1)
		kit.Check(t, len(named) > 0, "no command makes the figures of %.40q", section)
		for _, c := range named {
			kit.Check(t, strings.Contains(rows, `{"`+c[1]+`"`), "lab has no %q", c[1])
		}
	}
}

// figuresMissing are the parts of a table's first three columns whose figures no row and no paragraph of the results has
// together. A semicolon ends a cell's part.
func figuresMissing(table, results string) (missing []string) {
	figure := regexp.MustCompile(`[0-9][0-9.–]*[0-9]?( %| [kKMG]i?B| ms)?`)
	places := strings.Split(strings.ReplaceAll(results, "\n|", "\n\n|"), "\n\n")
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) < 4 {
			continue
		}
		for _, part := range strings.Split(strings.Join(cells[1:4], ";"), ";") {
			if !slices.ContainsFunc(places, func(place string) bool {
				return !slices.ContainsFunc(figure.FindAllString(part, -1), func(f string) bool {
					return !regexp.MustCompile(`(^|[^0-9.])` + regexp.QuoteMeta(f) + `($|[^0-9.]|\.[^0-9])`).MatchString(place)
				})
			}) {
				missing = append(missing, strings.TrimSpace(part))
			}
		}
	}
	return missing
}

// hasTest reports whether a package has a test.
func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files := kit.Try(filepath.Glob(filepath.Join(dir, "*_test.go"))).Must(t)
	for _, file := range files {
		text := kit.Try(os.ReadFile(file)).Must(t)
		if strings.Contains(string(text), "func "+name+"(") {
			return true
		}
	}
	return false
}
