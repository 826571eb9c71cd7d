package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
)

var update = flag.Bool("update", false, "write the table of options in the documentation anew")

// TestDocumentedOptions: the table of docs/configuration.md has every option, its default and its meaning.
func TestDocumentedOptions(t *testing.T) {
	const begin, end = "<!-- options: written by `make docs` -->\n", "<!-- end -->\n"
	path := filepath.Join("..", "..", "docs", "configuration.md")
	page := kit.Try(os.ReadFile(path)).Must(t)
	before, rest, ok := strings.Cut(string(page), begin)
	table, after, ended := strings.Cut(rest, end)
	kit.Require(t, ok && ended, "%s has no table between %q and %q", path, begin, end)
	var b strings.Builder
	b.WriteString("| key | value; default | |\n|---|---|---|\n")
	for _, o := range Options() {
		given, doc := "", o.Doc
		if o.Default != "" {
			given = "; `" + o.Default + "`"
		}
		if !o.Live {
			doc += " Needs a restart."
		}
		fmt.Fprintf(&b, "| `%s` | %s%s | %s |\n", o.Name, strings.ReplaceAll(o.Type(), "|", "or"), given, doc)
	}
	if *update {
		kit.Must(t, os.WriteFile(path, []byte(before+begin+b.String()+end+after), 0o644))
		return
	}
	kit.Same(t, "the table of options is not that of the code; `make docs` writes it anew", cmp.Diff(table, b.String()))
}
