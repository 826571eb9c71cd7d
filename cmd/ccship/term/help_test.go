package term

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/e2e/kit"
)

func tree() (*cobra.Command, *bytes.Buffer) {
	root := &cobra.Command{Use: "thing", Short: "Do a thing", Run: func(*cobra.Command, []string) {}}
	c := &cobra.Command{Use: "pause", Short: "Stop for a while", Long: "Stop sending, for a while or until it is ended, whatever comes first of the two.", Run: func(*cobra.Command, []string) {}}
	c.Flags().Duration("for", 0, "how long; without it, until `thing resume`")
	c.Flags().String("since", "", "only since then, which may be a day or a number of hours or days before now")
	c.Flags().Int("limit", 20, "how many")
	c.Flags().String("session", "", "only of this `session`")
	c.Flags().StringSlice("by", nil, "columns")
	c.Flags().Bool("json", false, "print JSON")
	root.AddCommand(c)
	var out bytes.Buffer
	root.SetOut(&out)
	Dress(root)
	return root, &out
}

// A flag's placeholder is one word, and neither its name nor a type.
func TestPlaceholders(t *testing.T) {
	root, out := tree()
	root.SetArgs([]string{"pause", "--help"})
	kit.Must(t, root.Execute())
	for _, want := range []string{
		"--for duration ", "how long; without it, until thing resume\n", "--since when ", "--limit number ", "(default 20)\n", "--session id ", "--by list ", "--json ",
	} {
		kit.Check(t, strings.Contains(out.String(), want), "no %q in\n%s", want, out)
	}
	root.SetArgs([]string{"pause", "--limit", "3", "--by", "a,b", "--session", "x"})
	kit.Must(t, root.Execute())
}

// On a terminal no line is longer than it, and no word is lost.
func TestFit(t *testing.T) {
	root, _ := tree()
	text := root.Commands()[1].Long + "\n\n" + root.Commands()[1].UsageString()
	for _, columns := range []int{40, 60, 80} {
		got := fit(text, columns)
		kit.Check(t, strings.Join(strings.Fields(got), " ") == strings.Join(strings.Fields(text), " "),
			"%d columns: other words:\n%s", columns, got)
		for line := range strings.Lines(got) {
			kit.Check(t, Width(strings.TrimSuffix(line, "\n")) <= columns, "%d columns: %q", columns, line)
		}
	}
	kit.Check(t, fit(text, 0) == text, "without a terminal it is another text")
}
