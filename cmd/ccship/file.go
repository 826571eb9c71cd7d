package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/protocol"
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

// wholeID is the length of a session's id: it means one session, whether the server can be asked or not.
const wholeID = 36

// lookTime is how long a server may take to say what it has of the session.
const lookTime = 10 * time.Second

func (a *app) forgetCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "forget SESSION",
		Short: "Remove a conversation from the server for good, and never send it again",
		Long: "Remove a session and its agents from the server, the outbox and the dead letters, for good; it is " +
			"never sent or stored again. The files on disk stay, and so does what the server has of the prompt " +
			"history (history.jsonl).",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeSession,
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, args []string) error {
			client, err := a.DaemonClient(ctx)
			if err != nil {
				return err
			}
			l, err := a.library(ctx)
			if err != nil {
				return err
			}
			soon, cancel := context.WithTimeoutCause(ctx, lookTime, fmt.Errorf("no answer for %s", lookTime))
			defer cancel()
			found, err := l.Find(soon, args[0])
			whole := len(args[0]) >= wholeID && remote.Is(err, control.CodeUnreachable)
			if whole || remote.Is(err, control.CodeNoSession) { // the daemon may remember more than disk and server have
				found, err = library.Found{Session: args[0]}, nil
			}
			if err != nil {
				return err
			}
			if !yes {
				if err := a.confirmForget(ctx, found); err != nil {
					return err
				}
			}
			result, err := client.Forget(ctx, control.ForgetRequest{Session: found.Session})
			if err != nil {
				return err
			}
			return a.showForgotten(result)
		}),
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	a.AddJSON(cmd)
	return cmd
}

// confirmForget asks before what cannot be undone.
func (a *app) confirmForget(ctx context.Context, f library.Found) error {
	k := term.NewAsker(a.Stderr)
	if k == nil {
		return control.Usage("this removes session "+f.Session+" for good",
			"add --yes to confirm")
	}
	title := ""
	for _, s := range f.Stored {
		title = term.Printable(s.Summary.Title)
	}
	if title != "" {
		a.Say("%s", term.Cut(title, 100))
	}
	sure, err := k.Yes(ctx, "remove session "+f.Session+" from the server for good?", false)
	if err == nil && !sure {
		return control.NewError("interrupted", "nothing was removed", "run it again, or with --yes")
	}
	return err
}

func (a *app) showForgotten(r control.ForgetResult) error {
	err := show.Answer(&a.App, r, nil, show.Forgotten)
	switch {
	case err == nil && len(r.Pending) > 0:
		return show.SilentError{Code: show.ExitUnreachable}
	case err == nil && len(r.Kept) > 0:
		return show.SilentError{Code: show.ExitFailed}
	}
	return err
}

// shareAsk is what `share` is asked for.
type shareAsk struct {
	session, user, expires string
	list                   bool
	end                    int64
}

func (a *app) shareCommand() *cobra.Command {
	var ask shareAsk
	cmd := &cobra.Command{
		Use:   "share [SESSION]",
		Short: "Make a link that shows one conversation to whoever has it",
		Long: "Make an address at which anybody reads one session and its agents, without a login. What looks " +
			"like a secret is masked. The address is printed once. It works until --expires is over, until --revoke " +
			"ends it, or until the key that made it is revoked.",
		Example: "  ccship share 3f2a9c01 --expires 24h\n  ccship share --list\n" +
			"  ccship share --revoke 4",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeSession,
		RunE: show.Interruptible(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				ask.session = args[0]
			}
			if revoke := cmd.Flags().Changed("revoke"); revoke && (ask.end < 1 || ask.list || ask.session != "") ||
				!revoke && !ask.list && ask.session == "" {
				return control.Usage("say which session to share, --list, or --revoke with the number of a link",
					"see `ccship share --help`")
			}
			return a.share(ctx, ask)
		}),
	}
	cmd.Flags().StringVar(&ask.expires, "expires", "7d", "how long the link works: `time` such as 12h or 7d, up to 365d")
	cmd.Flags().BoolVar(&ask.list, "list", false, "list the links that work, to all sessions or to this one")
	cmd.Flags().Int64Var(&ask.end, "revoke", 0, "end the link of this `number`")
	cmd.Flags().StringVar(&ask.user, "user", "", userUsage)
	a.AddJSON(cmd)
	return cmd
}

func (a *app) share(ctx context.Context, ask shareAsk) error {
	l, err := a.onServer(ctx, &ask.session)
	if err != nil {
		return err
	}
	var links []protocol.ShareLink
	switch {
	case ask.end != 0:
		err = remote.EndShareLink(ctx, l.Server, ask.end)
		if remote.Is(err, control.CodeNoSession) {
			err = control.NewError(control.CodeNoSession, fmt.Sprintf("no link %d of yours works", ask.end),
				"`ccship share --list` shows those that do")
		}
	case ask.list:
		links, err = remote.ShareLinks(ctx, l.Server, ask.session)
	default:
		var made protocol.ShareLink
		made, err = remote.Share(ctx, l.Server, remote.Ref{Session: ask.session, User: ask.user}, ask.expires)
		links = append(links, made)
	}
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.PrintJSON(struct {
			SchemaVersion int                  `json:"schema_version"`
			Links         []protocol.ShareLink `json:"links"`
		}{control.SchemaVersion, slices.Concat([]protocol.ShareLink{}, links)})
	case ask.end != 0:
		a.Say("link %d shows nothing any more", ask.end)
		return nil
	case ask.list:
		return a.Print(a.View().ShareLinks(links))
	}
	a.Say("anybody with this link reads the session until %s; `ccship share --revoke %d` ends it",
		links[0].Until.Local().Format(time.DateTime), links[0].ID)
	return a.Print(links[0].URL + "\n")
}
