package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/protocol"
)

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
