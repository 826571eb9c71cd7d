package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/transcript/redact"
)

// formats returns what a session can be exported as.
func formats() []string { return []string{"md", "html", "json", "jsonl"} }

func (a *app) exportCommand() *cobra.Command {
	var format, output string
	var which library.Copy
	var force bool
	cmd := &cobra.Command{
		Use:               "export SESSION",
		Short:             "Write a conversation as Markdown, HTML, JSON or JSON Lines",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeSession,
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, args []string) error {
			if err := oneOf("--format", format, formats()); err != nil {
				return err
			}
			l, err := a.library(ctx)
			if err != nil {
				return err
			}
			var tokens redact.Counter
			export := func(w io.Writer) error {
				return l.Export(ctx, args[0], which, format, io.MultiWriter(w, &tokens))
			}
			if output == "" || output == "-" {
				err = export(term.SafeWriter(a.Stdout, true))
			} else {
				var n int64
				if n, err = library.WriteFile(output, force, export); err == nil {
					a.Say("wrote %s (%s)", output, amount.Size(n))
				}
			}
			if err == nil && tokens.N > 0 {
				a.Say("%s masked in it: tokens are in their place", amount.Counted(tokens.N, "secret is", "secrets are"))
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&format, "format", "md", "md, html, json or jsonl")
	cmd.Flags().StringVarP(&output, "output", "o", "", "`file` to write; otherwise to standard output")
	cmd.Flags().StringVar(&which.User, "user", "", userUsage)
	cmd.Flags().StringVar(&which.Machine, "machine", "", "of this `machine`: its host name, or the beginning of its id")
	cmd.Flags().BoolVar(&force, "force", false, "replace the file")
	a.completeFlag(cmd, "format", formats())
	return cmd
}

func (a *app) restoreCommand() *cobra.Command {
	var w library.RestoreRequest
	var generation int64
	cmd := &cobra.Command{
		Use:   "restore SESSION",
		Short: "Restore a conversation's files from the server, so that it can be resumed",
		Long: "Write the session's transcript and those of its agents below the projects folder, byte for byte as " +
			"the server has them. A file gets its name only when its digest is right; a different file with that " +
			"name is moved aside. Refused while the session is live, unless with --force or --to.",
		Example: "  ccship restore 3f2a9c01\n" +
			"  ccship restore 3f2a9c01 --generation 2 --to before-the-rewind.jsonl",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeSession,
		RunE: show.Interruptible(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if err := chosenGeneration(cmd, generation, &w.Generation); err != nil {
				return err
			}
			l, err := a.library(ctx)
			if err != nil {
				return err
			}
			w.Session = args[0]
			done, err := l.Restore(ctx, w)
			return show.Answer(&a.App, done, err, func(r library.Restored) string { return show.Restored(r, w.To != "") })
		}),
	}
	cmd.Flags().Int64Var(&generation, "generation", 0,
		"an older `generation`, from before a rewind; `ccship show` lists them")
	cmd.Flags().StringVar(&w.User, "user", "", userUsage)
	cmd.Flags().StringVar(&w.Machine, "machine", "", "of this `machine`: its host name, or the beginning of its id")
	cmd.Flags().StringVar(&w.To, "to", "", "write to this `file` instead, without the agents' transcripts")
	cmd.Flags().BoolVar(&w.Force, "force", false, "restore even while the session is live, and overwrite the file of --to")
	cmd.Flags().BoolVar(&w.Partial, "partial", false, "restore even if the server lacks some lines; those are blank")
	cmd.Flags().BoolVar(&w.NoAgents, "no-agents", false, "do not restore the agents' transcripts")
	a.AddJSON(cmd)
	return cmd
}
