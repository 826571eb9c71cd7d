//go:build linux

package field_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/bench/league"
	"github.com/ccship/ccship/e2e/kit"
)

// TestReadme: the figures in the README are those that were measured and committed, each with the part of the chain that
// it is about.
func TestReadme(t *testing.T) {
	t.Parallel()
	root, err := kit.Root()
	kit.Must(t, err)
	table, err := league.Load(filepath.Join(root, "docs", "benchmarks.json"), "full")
	kit.Must(t, err)
	figure := func(key, by, column string) float64 {
		for _, s := range table.Scenarios {
			if f := s.Figure(by, column); s.Key == key && f != nil {
				return league.Of(f.Values).Median
			}
		}
		t.Fatalf("no figure of %s in %s, %s", by, key, column)
		return 0
	}
	const chain = "ccship + ccship-server"
	want := []string{
		fmt.Sprintf("| first import of 100 MB | the service alone: no server, no index | %.0f MB per CPU-second |",
			figure("import", ccship, "100 MB: MB per CPU-second")),
		fmt.Sprintf("| the same until it can be searched | service, server and index | %.0f MB per CPU-second |",
			figure("chain", chain, "MB per CPU-second")),
		fmt.Sprintf("| line written → found by a search | service, server and index | p50 %.0f ms |",
			figure("chain", chain, "append → searchable, p50")),
		fmt.Sprintf("| an idle minute with 10 000 files | the service alone | %.2g %% of a core, %.0f bytes written, %.0f MiB |",
			figure("idle", ccship, "10000 files: CPU"), figure("idle", ccship, "10000 files: written")*1000,
			figure("idle", ccship, "10000 files: RSS")),
	}
	readme := read(t, filepath.Join(root, "README.md"))
	for _, row := range want {
		if !strings.Contains(readme, row) {
			t.Errorf("the README has no row %q", row)
		}
	}
	page := read(t, filepath.Join(root, "docs", "benchmarks.md"))
	for _, figure := range []string{"p50 3.9 ms, p99 10.0 ms"} { // of `make bench`, which are in the page only
		if !strings.Contains(readme, figure) || !strings.Contains(page, figure) {
			t.Errorf("README and page do not both have %q", figure)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	kit.Must(t, err)
	return string(text)
}
