package main

import (
	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
)

// verbs makes the commands.
type verbs struct{ *show.App }

// commands returns the verbs of this package.
func commands(a *show.App) []*cobra.Command {
	v := verbs{a}
	return []*cobra.Command{
		v.searchCommand(), v.whyCommand(), v.listCommand(), v.showCommand(), v.resumeCommand(), v.exportCommand(),
		v.restoreCommand(),
		v.shareCommand(), v.usageCommand(), v.forgetCommand(), v.messagesCommand(),
		v.checkpointCommand(), v.linkCommand(),
	}
}

// complete offers the ids of sessions on disk, which the daemon lists.
func complete(a *show.App) cobra.CompletionFunc { return verbs{a}.completeSession }
