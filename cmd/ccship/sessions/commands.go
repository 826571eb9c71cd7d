// Package sessions has the verbs about conversations: sessions, search, usage, forget, messages, checkpoint and
// link.
package sessions

import (
	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/cli"
)

// verbs makes the commands.
type verbs struct{ *cli.App }

// Commands are the verbs of this package.
func Commands(a *cli.App) []*cobra.Command {
	v := verbs{a}
	return []*cobra.Command{
		v.sessionsCommand(), v.searchCommand(), v.blameCommand(), v.fixCommand(),
		v.usageCommand(), v.forgetCommand(), v.messagesCommand(),
		v.checkpointCommand(), v.linkCommand(),
	}
}

// Complete offers the ids of sessions on disk, which the daemon lists.
func Complete(a *cli.App) cobra.CompletionFunc { return verbs{a}.completeSession }
