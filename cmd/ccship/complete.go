package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/internal/amount"
)

// Completions that need the daemon offer nothing when it does not answer.

// completeKeys offers configuration keys, one for a command.
func completeKeys(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		o, _ := config.LookupOption(args[0])
		return o.Choices, cobra.ShellCompDirectiveDefault
	}
	var keys []string
	for _, o := range config.Options() {
		keys = append(keys, cobra.CompletionWithDesc(o.Name, o.Doc))
	}
	return keys, cobra.ShellCompDirectiveNoFileComp
}

// completeDead offers the ids of dead letters.
func (a *app) completeDead(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	client, _, err := a.DaemonClient(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	dead, err := client.DeadLetters(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	named := map[string]bool{}
	for _, id := range args {
		named[id] = true
	}
	var ids []string
	for _, l := range dead.Letters {
		if !named[l.ID] {
			about := fmt.Sprintf("%s, line %d: %s", show.SessionOrPath(l.Session, l.Path),
				amount.LineNumber(l.Line), show.Reason(l))
			ids = append(ids, cobra.CompletionWithDesc(l.ID, about))
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// completePatterns offers the patterns that are excluded.
func (a *app) completePatterns(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	c, err := a.Config()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.ExcludeProjects, cobra.ShellCompDirectiveNoFileComp
}
