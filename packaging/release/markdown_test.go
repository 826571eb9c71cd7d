package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the pages of the documentation anew")

// TestCommandPages: the pages of all commands in the documentation say what the programs say.
func TestCommandPages(t *testing.T) {
	for name, file := range map[string]string{"ccship": "commands.md", "ccship-server": "server-commands.md"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := kit.Try(manualPage{Program: buildProgram(t, name)}.Markdown(t.Context())).Must(t)
			path := filepath.Join("..", "..", "docs", file)
			if *update {
				kit.Must(t, os.WriteFile(path, []byte(got), 0o644))
			}
			want := kit.Try(os.ReadFile(path)).Must(t)
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("docs/%s is not what %s --help says; `make docs` writes it anew (-page +help):\n%s", file, name, diff)
			}
		})
	}
}
