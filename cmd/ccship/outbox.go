package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

func (a *app) outboxCommand() *cobra.Command {
	return show.Group("outbox", "Show what is queued, and what the server refused", "",
		a.outboxList(), a.outboxRetry(), a.outboxDrop())
}

func (a *app) outboxList() *cobra.Command {
	var page control.Page
	var dead bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what is queued, oldest first, or the dead letters",
		Long: "List what is queued, oldest first. With --dead, list dead letters: entries the server rejected for their " +
			"content.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkPage(cmd, page); err != nil {
				return err
			}
			if !dead {
				return show.Ask(cmd.Context(), &a.App, (*control.Client).Outbox, page, a.View().Outbox)
			}
			client, err := a.DaemonClient(cmd.Context())
			if err != nil {
				return err
			}
			letters, err := client.DeadLetters(cmd.Context())
			return show.Answer(&a.App, letters, err, a.View().DeadLetters)
		},
	}
	addPage(cmd, &page)
	cmd.Flags().BoolVar(&dead, "dead", false, "the dead letters")
	a.AddJSON(cmd)
	return cmd
}

// addPage gives a command that lists the flags that say which part.
func addPage(cmd *cobra.Command, page *control.Page) {
	cmd.Flags().IntVar(&page.Limit, "limit", 100, "how many at most, up to 1000")
	cmd.Flags().IntVar(&page.Offset, "offset", 0, "how many to skip")
}

func checkPage(cmd *cobra.Command, page control.Page) error {
	if page.Offset < 0 || page.Limit < 1 {
		return control.Usage("--limit must be 1 or more, and --offset 0 or more", "see `"+cmd.CommandPath()+" --help`")
	}
	return nil
}

func (a *app) outboxRetry() *cobra.Command {
	cmd := a.deadCommand("retry", "queued again", (*control.Client).RetryDead)
	cmd.Short = "Send dead letters again"
	cmd.Long = "Put dead letters back into the outbox: all that are named, or none if one does not exist. " +
		"A dead letter that is refused again gets a new id."
	return cmd
}

func (a *app) outboxDrop() *cobra.Command {
	cmd := a.deadCommand("drop", "dropped", (*control.Client).DropDead)
	cmd.Short = "Remove dead letters, or everything queued for a retired server"
	cmd.Long = "Remove dead letters for good: all that are named, or none if one does not exist. The transcripts stay; " +
		"`ccship verify` reports the lines as missing from then on.\n\n" +
		"With --server and --yes: discard everything queued for a retired server, and its dead letters. " +
		"All of it was queued for the current server as well."
	var server string
	var yes bool
	cmd.Flags().StringVar(&server, "server", "", "URL of a retired server")
	cmd.Flags().BoolVar(&yes, "yes", false, "with --server: do it")
	cmd.Use += " | --server URL --yes"
	letters := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("server") {
			return letters(cmd, args)
		}
		return a.dropServer(cmd, args, server, yes)
	}
	return cmd
}

// dropServer discards what waits for a retired server.
func (a *app) dropServer(cmd *cobra.Command, args []string, server string, yes bool) error {
	switch {
	case len(args) > 0 || cmd.Flags().Changed("all"):
		return control.Usage("--server discards everything queued for a server, so dead letters cannot be named too",
			"leave out the dead letters or --all, or leave out --server")
	case !yes:
		return control.Usage("this permanently discards everything queued for "+server,
			"`ccship outbox list` shows it; add --yes to discard it")
	}
	return show.Ask(cmd.Context(), &a.App, (*control.Client).DropServer, control.DropServerRequest{Server: server},
		func(r control.DropServerResult) string {
			return fmt.Sprintf("discarded %s with %s, and %s, for %s\n", amount.Counted(r.Rows, "row", "rows"),
				amount.Counted(r.Entries, "line", "lines"), amount.Counted(r.Letters, "dead letter", "dead letters"), r.Server)
		})
}

// deadCall is a call to the daemon about dead letters.
type deadCall func(*control.Client, context.Context, control.DeadRequest) (control.DeadResult, error)

// deadCommand returns a verb that makes a call; done says in the past tense what the call does to the letters.
func (a *app) deadCommand(verb, done string, do deadCall) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:               verb + " ID… | --all",
		ValidArgsFunction: a.completeDead,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return control.Usage("name dead letters, or all of them with --all", "`ccship outbox list --dead` lists them")
			}
			return show.Ask(cmd.Context(), &a.App, do, control.DeadRequest{IDs: args, All: all},
				func(r control.DeadResult) string {
					return amount.Counted(int64(r.Letters), "dead letter", "dead letters") + " " + done + "\n"
				})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all dead letters")
	a.AddJSON(cmd)
	return cmd
}
