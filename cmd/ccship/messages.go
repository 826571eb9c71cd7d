package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

// messagesOptions are the flags of `ccship messages`.
type messagesOptions struct {
	control.Page
	follow, clear bool
}

func (a *app) messagesCommand() *cobra.Command {
	var o messagesOptions
	cmd := &cobra.Command{
		Use:   "messages SESSION",
		Short: "Show the last messages of a conversation",
		Long: "Show the short history that the daemon keeps of a conversation: prompts, answers, tool calls with " +
			"shortened results, errors, commands, compactions, interruptions, and what each turn took. The options " +
			"messages_kept, message_input_limit and message_output_limit say how much. An agent's history is named " +
			"SESSION/AGENT-ID.",
		Args: cobra.ExactArgs(1),
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, args []string) error {
			if o.Limit < 0 || o.Offset < 0 {
				return control.Usage("--limit and --offset must be 0 or more", "see `ccship messages --help`")
			}
			if o.follow && (o.clear || o.Offset > 0) {
				return control.Usage("--follow cannot be combined with --clear or --offset", "choose one of them")
			}
			client, err := a.DaemonClient(ctx)
			if err != nil {
				return err
			}
			if o.clear {
				return a.clearMessages(ctx, client, args[0])
			}
			if o.follow {
				return a.followMessages(ctx, client, args[0], o.Limit)
			}
			m, err := client.Messages(ctx, control.MessagesQuery{Session: args[0], Page: o.Page})
			return show.Answer(&a.App, m, err, a.View().Messages)
		}),
	}
	cmd.Flags().IntVar(&o.Limit, "limit", 0, "how many at most; 0 is all that are kept")
	cmd.Flags().IntVar(&o.Offset, "offset", 0, "how many of the newest to skip")
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "print new messages as they are written, until Ctrl-C")
	cmd.Flags().BoolVar(&o.clear, "clear", false, "delete the kept messages; new ones are kept again")
	a.AddJSON(cmd)
	return cmd
}

func (a *app) clearMessages(ctx context.Context, client *control.Client, session string) error {
	r, err := client.ClearMessages(ctx, session)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(r)
	}
	a.Say("%s of %s forgotten; the transcript stays as it is",
		amount.Counted(int64(r.Cleared), "message", "messages"), term.Printable(r.Session))
	return nil
}

// followRate is the time between two questions about a session that is followed.
const followRate = 300 * time.Millisecond

// followedMessage is a line of `messages --follow --json`.
type followedMessage struct {
	SchemaVersion int             `json:"schema_version"`
	Session       string          `json:"session"`
	Message       control.Message `json:"message"`
}

// followMessages prints messages as they come, and calls once more when they have their result, until Ctrl-C.
func (a *app) followMessages(ctx context.Context, client *control.Client, session string, limit int) error {
	view := a.View()
	var known seenMessages
	tick := time.NewTicker(followRate)
	defer tick.Stop()
	for first := true; ; first = false {
		m, err := client.Messages(ctx, control.MessagesQuery{Session: session})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && (first || !show.Temporary(err)) {
			return err
		}
		if err == nil {
			session = m.Session
			fresh := known.fresh(m.Messages)
			if first && limit > 0 {
				fresh = fresh[max(0, len(fresh)-limit):]
			}
			if err := a.printFollowed(view, m, fresh); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (a *app) printFollowed(view show.View, m control.Messages, fresh []control.Message) (err error) {
	for i := range fresh {
		if a.JSON {
			err = errors.Join(err, a.PrintJSON(followedMessage{control.SchemaVersion, m.Session, fresh[i]}))
		} else {
			err = errors.Join(err, a.Print(view.Message(&fresh[i])))
		}
	}
	return err
}

// messageKey distinguishes messages; a call that has its result is another one than before.
type messageKey struct {
	line             int64
	kind, uuid, tool string
}

// seenMessages remembers what was printed.
type seenMessages map[messageKey]bool

// fresh answers those that were not printed yet, and remembers all that are kept.
func (s *seenMessages) fresh(all []control.Message) (fresh []control.Message) {
	now := make(seenMessages, len(all))
	for i := range all {
		m := &all[i]
		k := messageKey{m.Line, m.Type, m.UUID, m.ToolUseID}
		if now[k] = true; !(*s)[k] {
			fresh = append(fresh, *m)
		}
	}
	*s = now
	return fresh
}

// sessionVariable is set by Claude Code for what it runs: the session's id.
const sessionVariable = "CLAUDE_CODE_SESSION_ID"

func (a *app) checkpointCommand() *cobra.Command {
	return show.Group("checkpoint", "List, show and create checkpoints: how full the context was, and what it was about",
		"List, show and create checkpoints. One is created when a session has used 80 % and 90 % of its "+
			"token budget, at every compaction, and on request.",
		a.checkpointList(), a.checkpointShow(), a.checkpointCreate(), a.checkpointBudget())
}

func (a *app) checkpointList() *cobra.Command {
	q := control.CheckpointsQuery{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List checkpoints, newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkPage(cmd, q.Page); err != nil {
				return err
			}
			return show.Ask(cmd.Context(), &a.App, (*control.Client).Checkpoints, q, a.View().Checkpoints)
		},
	}
	cmd.Flags().StringVar(&q.Session, "session", "", "only of this `session`")
	addPage(cmd, &q.Page)
	a.AddJSON(cmd)
	return cmd
}

func (a *app) checkpointShow() *cobra.Command {
	var session string
	cmd := &cobra.Command{
		Use:   "show ID|latest",
		Short: "Show one checkpoint",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if session != "" && args[0] != latest {
				return control.Usage("--session only goes with latest", "leave out --session: an id names one checkpoint")
			}
			client, err := a.DaemonClient(cmd.Context())
			if err != nil {
				return err
			}
			answer, err := a.oneCheckpoint(cmd, client, args[0], session)
			return show.Answer(&a.App, answer, err, a.View().Checkpoint)
		},
	}
	cmd.Flags().StringVar(&session, "session", "", "with latest: the newest of this `session`")
	a.AddJSON(cmd)
	return cmd
}

// latest stands for the id of the newest checkpoint.
const latest = "latest"

// oneCheckpoint returns the checkpoint with an id, or for latest the newest of a session, or of all.
func (a *app) oneCheckpoint(cmd *cobra.Command, client *control.Client, id, session string) (
	control.CheckpointAnswer, error) {
	if id != latest {
		return client.Checkpoint(cmd.Context(), id)
	}
	newest := control.CheckpointsQuery{Session: session, Page: control.Page{Limit: 1}}
	list, err := client.Checkpoints(cmd.Context(), newest)
	if err == nil && len(list.Checkpoints) == 0 {
		err = control.NewError(control.CodeNoCheckpoint, "there is no checkpoint yet",
			"`ccship checkpoint create ID` creates one")
	}
	if err != nil {
		return control.CheckpointAnswer{}, err
	}
	return control.CheckpointAnswer{SchemaVersion: list.SchemaVersion, Checkpoint: list.Checkpoints[0]}, nil
}

func (a *app) checkpointCreate() *cobra.Command {
	var req control.CheckpointRequest
	cmd := &cobra.Command{
		Use:   "create [SESSION]",
		Short: "Create a checkpoint of a session now",
		Long: "Create a checkpoint of a session now. Without SESSION: the one that this command runs in, else the " +
			"one written last in this folder or above it.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && req.Session != "" {
				return control.Usage("the session is given twice", "leave --session out")
			}
			if len(args) > 0 {
				req.Session = args[0]
			}
			client, name, err := a.linkSession(cmd.Context(), req.Session)
			if err != nil {
				return err
			}
			req.Session = name
			answer, err := client.CreateCheckpoint(cmd.Context(), req)
			return show.Answer(&a.App, answer, err, a.View().Checkpoint)
		},
	}
	cmd.Flags().StringVar(&req.Session, "session", "", "the `session`, as the argument")
	cmd.Flags().StringVar(&req.Trigger, "trigger", control.TriggerManual, "why: manual or pre_heavy")
	cmd.Flags().StringVar(&req.Summary, "summary", "", "what it is about; by default taken from the conversation")
	cmd.Flags().StringVar(&req.PortID, "port", "", "your own `name` for the work")
	a.AddJSON(cmd)
	return cmd
}

func (a *app) checkpointBudget() *cobra.Command {
	var req control.BudgetRequest
	var unset bool
	cmd := &cobra.Command{
		Use:   "budget",
		Short: "Show or set how many tokens a conversation can hold",
		Long: "Show or set token budgets. Checkpoints are created at 80 % and 90 % of the budget: where Claude " +
			"Code compacts by itself, learned from automatic compactions, before the first one derived from the " +
			"model. Set it if you change Claude Code's own settings (such as CLAUDE_CODE_AUTO_COMPACT_WINDOW or " +
			"DISABLE_AUTO_COMPACT), which no transcript shows. Without --session and --model, list all known " +
			"budgets.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			set := cmd.Flags().Changed("set")
			if err := checkBudget(&req, set, unset); err != nil {
				return err
			}
			client, err := a.DaemonClient(cmd.Context())
			if err != nil {
				return err
			}
			var budgets control.Budgets
			if set || unset {
				budgets, err = client.SetBudget(cmd.Context(), req)
			} else {
				budgets, err = client.Budgets(cmd.Context(), req.Session)
			}
			if req.Model != "" && !set && !unset {
				budgets.Budgets = slices.DeleteFunc(budgets.Budgets, func(b control.Budget) bool {
					return b.Session != "" || b.Model != req.Model
				})
			}
			return show.Answer(&a.App, budgets, err, a.View().Budgets)
		},
	}
	cmd.Flags().StringVar(&req.Session, "session", "", "of this `session`")
	cmd.Flags().StringVar(&req.Model, "model", "", "of all sessions with this `model`")
	cmd.Flags().Int64Var(&req.Limit, "set", 0, "how many `tokens` it can hold")
	cmd.Flags().BoolVar(&unset, "unset", false, "forget what was set")
	a.AddJSON(cmd)
	return cmd
}

func checkBudget(req *control.BudgetRequest, set, unset bool) error {
	switch {
	case req.Session != "" && req.Model != "":
		return control.Usage("--session and --model cannot be combined", "leave one of them out")
	case set && unset:
		return control.Usage("--set and --unset cannot be combined", "leave one of them out")
	case (set || unset) && req.Session+req.Model == "":
		return control.Usage("a budget is set for a session or for a model", "name it with --session or --model")
	case set && req.Limit <= 0:
		return control.Usage("--set is a number of tokens", "--unset forgets what was set")
	}
	return nil
}
