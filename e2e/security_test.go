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

// TestFigures: README's figures are those of the page of results.
func TestFigures(t *testing.T) {
	readme := kit.Try(os.ReadFile("../README.md")).Must(t)
	results := kit.Try(os.ReadFile("../docs/internals/benchmarks.md")).Must(t)
	_, table, _ := strings.Cut(string(readme), "\n## Figures\n")
	table, _, _ = strings.Cut(table, "\n## ")
	different := figuresMissing(table, string(results))
	kit.Check(t, len(different) == 0, "figures of README that benchmarks.md does not have: %q", different)
	for _, change := range []string{"0.041", "3.9 ms", "57 KB", "40 ms (p99", "≤ 131 KB", "0.74 of raw", "97.8"} {
		other := strings.ReplaceAll(string(results), change, "7")
		kit.Check(t, other != string(results), "the results do not have %q", change)
		kit.Check(t, len(figuresMissing(table, other)) > 0, "%q is another one, and nobody sees it", change)
	}
}

// figuresMissing are the cells of a table, behind the first column, whose figures no row and no paragraph of the results
// has together. A semicolon ends a cell's part.
func figuresMissing(table, results string) (missing []string) {
	figure := regexp.MustCompile(`[0-9][0-9.–]*[0-9]?( %| [kKMG]i?B| ms)?`)
	places := strings.Split(strings.ReplaceAll(results, "\n|", "\n\n|"), "\n\n")
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) < 4 {
			continue
		}
		for _, part := range append(strings.Split(cells[2], ";"), cells[3]) {
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
