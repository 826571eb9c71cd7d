package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
)

// guessable is how many letters a mistyped command has at least for others with two other letters to be offered.
const guessable = 5

// strict has the commands that cobra makes refuse what they do not know, as all others do: by themselves they print
// help, and scripts would take that for success.
func strict(root *cobra.Command, args []string) {
	if len(args) > 0 && len(args[0]) < guessable {
		root.SuggestionsMinimumDistance = 1
	}
	root.InitDefaultCompletionCmd()
	term.Dress(root)
	if cmd, _, err := root.Find([]string{"completion"}); err == nil {
		cmd.Args = cobra.NoArgs
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	if cmd, _, err := root.Find([]string{"help"}); err == nil {
		cmd.Args = func(_ *cobra.Command, args []string) error {
			if _, rest, err := root.Find(args); err != nil || len(rest) > 0 {
				return fmt.Errorf("unknown command %q for %q", strings.Join(args, " "), root.Name())
			}
			return nil
		}
	}
}
