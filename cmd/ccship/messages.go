package main

import (
	"context"
	"errors"
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
