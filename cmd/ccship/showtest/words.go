package showtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FlagWords fails for a flag whose placeholder is not one word, is the flag's own name, or a type of Go.
func FlagWords(t *testing.T, root *cobra.Command) {
	t.Helper()
	check := func(f *pflag.Flag) {
		word, _ := pflag.UnquoteUsage(f)
		types := []string{"string", "int", "int64", "strings"}
		if word == f.Name || strings.Contains(word, " ") || slices.Contains(types, word) {
			t.Errorf("--%s takes %q", f.Name, word)
		}
	}
	var each func(*cobra.Command)
	each = func(c *cobra.Command) {
		c.Flags().VisitAll(check)
		c.PersistentFlags().VisitAll(check)
		for _, below := range c.Commands() {
			each(below)
		}
	}
	each(root)
}
