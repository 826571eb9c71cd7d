package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

func (a *app) syncCommand() *cobra.Command {
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Check every transcript and try every server now",
		Long: "Check every transcript now, try every server at once and end every pause. With --wait: exit 0 " +
			"once every line that was on disk is acknowledged, a dead letter, excluded or withheld. " +
			"On timeout: exit 4 if the server could not be reached, " +
			"5 if it rejected the API key, else 1.",
		Args: cobra.NoArgs,
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			if err := positive("timeout", timeout); err != nil {
				return err
			}
			client, err := a.DaemonClient(ctx)
			if err != nil {
				return err
			}
			if _, err := client.Flush(ctx); err != nil { // a server's own Retry-After ends too
				return err
			}
			result, err := client.Sync(ctx, control.SyncRequest{Wait: wait, Timeout: timeout.String()})
			if err != nil {
				return err
			}
			return a.showSync(result, wait)
		}),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until everything on disk is delivered")
	cmd.Flags().DurationVar(&timeout, "timeout", 20*time.Second, "with --wait: how long to wait")
	a.AddJSON(cmd)
	return cmd
}

// positive refuses a time-out of zero or less.
func positive(flag string, d time.Duration) error {
	if d > 0 {
		return nil
	}
	return control.Usage(fmt.Sprintf("--%s %s is not positive", flag, d), "a duration looks like 20s or 2m")
}

func (a *app) showSync(r control.SyncResult, wait bool) error {
	if a.JSON {
		if err := a.PrintJSON(r); err != nil {
			return err
		}
		if !wait || r.Done {
			return nil
		}
		return show.SilentError{Code: show.ExitCode(show.Unfinished(r))}
	}
	a.sayResumed(r.Resumed)
	if !wait {
		return a.Print("checking every transcript now\n")
	}
	counts := fmt.Sprintf("%s on disk: %s acknowledged, %s, %s excluded, %s withheld, %s waiting\n",
		amount.Counted(r.Lines, "line", "lines"), amount.Count(r.Acknowledged),
		amount.Counted(r.Dead, "dead letter", "dead letters"), amount.Count(r.Excluded),
		amount.Count(r.Withheld), amount.Count(r.Waiting))
	if err := a.Print(counts + show.RetiredServers(r.Retired)); err != nil {
		return err
	}
	if r.Done {
		return nil
	}
	return show.Unfinished(r)
}

// sayResumed says that a sync has ended a pause.
func (a *app) sayResumed(resumed bool) {
	if resumed {
		a.Say("the pause is over")
	}
}

func (a *app) verifyCommand() *cobra.Command {
	var timeout time.Duration
	var deep, repair, fromStart bool
	cmd := &cobra.Command{
		Use:   "verify [SESSION]",
		Short: "Prove that the server has every line that is on disk",
		Long: "Sync, read every transcript again from its first byte, and compare it with what the server shows. " +
			"Lines count from 1, in JSON from 0.\n\nExit 0: the server shows every line on disk; what the " +
			"configuration excludes is named. 1: lines are missing, different, not delivered, withheld or refused; " +
			"each is counted, with the command that fixes it. 4: the server cannot be reached. 5: it rejects the " +
			"API key.\n\nWith --repair, send transcripts again from the first difference, in a new generation, and " +
			"compare once more; nothing stored is overwritten. With --from-start too, send every line, for a server that " +
			"cannot be compared, and do not compare. With --deep, compare the past too: generations that " +
			"a rewind ended, and transcripts that are no longer on disk.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeSession,
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, args []string) error {
			if err := positive("timeout", timeout); err != nil {
				return err
			}
			req := control.VerifyRequest{Timeout: timeout.String(), Deep: deep, Repair: repair}
			if len(args) > 0 {
				req.Session = args[0]
			}
			if fromStart && (!repair || deep) {
				return control.Usage("--from-start goes with --repair, without --deep", "see `ccship verify --help`")
			}
			client, err := a.DaemonClient(ctx)
			if err != nil {
				return err
			}
			if fromStart {
				again := control.ResendRequest{Session: req.Session, All: req.Session == "", FromStart: true}
				result, err := client.Resend(ctx, again)
				return show.Answer(&a.App, result, err, show.Resend)
			}
			report, err := a.watchVerify(ctx, client, req)
			if err != nil {
				return err
			}
			return a.showReport(report, req.Session)
		}),
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 20*time.Second, "how long the sync at the start may take")
	cmd.Flags().BoolVar(&deep, "deep", false, "the whole history: every generation, and transcripts that are gone")
	cmd.Flags().BoolVar(&repair, "repair", false, "send what is missing or different again, and compare once more")
	cmd.Flags().BoolVar(&fromStart, "from-start", false, "with --repair: send every line, even those that the server has")
	a.AddJSON(cmd)
	return cmd
}

// watchVerify has the daemon compare, and shows how far it is.
func (a *app) watchVerify(ctx context.Context, client *control.Client,
	req control.VerifyRequest) (control.VerifyReport, error) {
	comparing, sending := term.NewBar(a.Stderr, "comparing"), term.NewBar(a.Stderr, "sending")
	report, err := client.Verify(ctx, req, func(p control.VerifyProgress) {
		bar := comparing
		if p.Sending {
			bar = sending
		}
		bar.Set(p.Bytes, p.BytesTotal)
	})
	comparing.Clear()
	sending.Clear()
	return report, err
}

func (a *app) showReport(r control.VerifyReport, session string) error {
	if session != "" && r.Files == 0 && r.Vanished == 0 && len(r.Transcripts) == 0 {
		return control.NewError("no_session", "there is no session "+session+" on this machine",
			"`ccship list` lists them; `ccship verify` without a session compares all on disk")
	}
	if !a.JSON {
		a.sayResumed(r.Resumed)
	}
	err := show.Answer(&a.App, r, nil, show.Verify)
	if err == nil && !r.Equal {
		return show.SilentError{Code: show.ExitFailed}
	}
	return err
}

func (a *app) pauseCommand() *cobra.Command {
	var length time.Duration
	cmd := &cobra.Command{
		Use:   "pause",
		Short: "Stop sending for a while; reading continues, so nothing is lost",
		Long: "Stop sending, for a while or until `ccship unpause`. New lines are still read into the outbox, " +
			"up to its cap. A restart does not end the pause; `ccship sync` does.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			req := control.PauseRequest{}
			if cmd.Flags().Changed("for") {
				if err := positive("for", length); err != nil {
					return err
				}
				req.For = length.String()
			}
			return show.Ask(cmd.Context(), &a.App, (*control.Client).Pause, req, func(s control.PauseState) string {
				return "paused " + show.PauseEnd(time.Now(), s.Pause) + ": nothing is sent, reading goes on\n"
			})
		},
	}
	cmd.Flags().DurationVar(&length, "for", 0, "how long, such as 30m or 2h; without it, until `ccship unpause`")
	a.AddJSON(cmd)
	return cmd
}

func (a *app) unpauseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "unpause",
		Short: "End a pause",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.DaemonClient(cmd.Context())
			if err != nil {
				return err
			}
			state, err := client.Resume(cmd.Context())
			return show.Answer(&a.App, state, err, func(s control.PauseState) string {
				if !s.Was {
					return "there was no pause\n"
				}
				return "resumed: what waits is sent now\n"
			})
		},
	}
	a.AddJSON(cmd)
	return cmd
}

// takeOver has a running daemon read a configuration file that was just written, and says when the change of a key is
// in force.
func (a *app) takeOver(ctx context.Context, path, key string) error {
	o, _ := config.LookupOption(key)
	client, err := a.DaemonClient(ctx)
	if errors.Is(err, control.ErrNotRunning) {
		a.Say("it takes effect when the daemon is started")
		return nil
	}
	if err != nil {
		return err
	}
	result, err := client.Reload(ctx)
	switch {
	case err != nil:
		return err
	case !show.SamePath(result.Config, path):
		a.Say("the running daemon reads %s: it does not see the change", result.Config)
	case !o.Live:
		a.Say("restart needed: the running daemon goes on with the value it has")
	default:
		a.Say("it takes effect at once")
	}
	return nil
}

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
