package main

import (
	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
)

// guessable is how many letters a mistyped command has at least for others with two other letters to be offered.
const guessable = 5

// strict dresses the help, and says which commands a mistyped one may mean.
func strict(root *cobra.Command, args []string) {
	if len(args) > 0 && len(args[0]) < guessable {
		root.SuggestionsMinimumDistance = 1
	}
	root.CompletionOptions.DisableDefaultCmd = true
	term.Dress(root, firstPage()...)
}
