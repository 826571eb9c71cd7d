package main

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/remote"
)

func (a verbs) savedViews() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "views",
		Short: "List the views you have saved, show what is in one, save and remove them",
		Long: "A view is a list of sessions, or a search, with its filters, saved under a name on the server. Nobody else " +
			"sees yours. The viewer lists them beside its own views, and saves what it shows with \"Save this view\". " +
			"Without a verb, list them.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onKeeper(cmd, func(ctx context.Context, _ *library.Library, keeper remote.Keeper) error {
				list, err := keeper.SavedViews(ctx, time.Now())
				if err != nil {
					return err
				}
				return a.printViews(list)
			})
		},
	}
	a.AddJSON(cmd)
	cmd.AddCommand(a.showView(), a.saveView(), a.removeView())
	return cmd
}

// onKeeper runs a command that asks the server about what its user keeps.
func (a verbs) onKeeper(cmd *cobra.Command,
	run func(ctx context.Context, l *library.Library, keeper remote.Keeper) error) error {
	ctx, stop := show.UntilSignal(cmd.Context())
	defer stop()
	var none string
	l, err := a.onServer(ctx, &none)
	if err != nil {
		return err
	}
	return run(ctx, l, remote.Keeper{Client: l.Server})
}

func (a verbs) printViews(list []remote.SavedView) error {
	if a.JSON {
		return a.PrintJSON(struct {
			SchemaVersion int                `json:"schema_version"`
			Views         []remote.SavedView `json:"views"`
		}{control.SchemaVersion, slices.Concat([]remote.SavedView{}, list)})
	}
	return a.Print(a.View().SavedViews(list))
}

// maxListed is how many sessions a view shows at most.
const maxListed = 1000

func (a verbs) showView() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "List the sessions, or the lines found, of a saved view",
		Example: "  ccship sessions views show \"Broken shop\"",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > maxListed {
				return control.Usage("--limit must be 1 to 1000", "")
			}
			return a.onKeeper(cmd, func(ctx context.Context, l *library.Library, keeper remote.Keeper) error {
				return a.runView(ctx, l, keeper, args[0], limit)
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "how many at most")
	a.AddJSON(cmd)
	return cmd
}

func (a verbs) runView(ctx context.Context, l *library.Library, keeper remote.Keeper, name string, limit int) error {
	list, err := keeper.SavedViews(ctx, time.Now())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(v remote.SavedView) bool { return v.Name == name })
	if i < 0 {
		return noView(name)
	}
	_, query, _ := strings.Cut(list[i].API, "?")
	q, err := url.ParseQuery(query)
	if err != nil {
		return fmt.Errorf("read the view's call: %w", err)
	}
	if list[i].Page == "search" {
		return a.found(ctx, l, remote.Find{Text: q.Get("q"), Limit: min(limit, maxFound)})
	}
	items, more, err := l.List(ctx, library.Filter{Saved: q, Limit: limit})
	return a.showList(items, more, err)
}

func noView(name string) error {
	return control.NewError(control.CodeNoSession, fmt.Sprintf("no saved view %q", name),
		"`ccship sessions views` lists yours")
}

// viewAsk is what `sessions views save` is asked for.
type viewAsk struct {
	library.Filter
	since, words string
}

// days is how a view says when it begins: a day, or how many days ago.
var days = regexp.MustCompile(`^(\d{4}-\d\d-\d\d|\d{1,4}d)?$`)

func (a verbs) saveView() *cobra.Command {
	var ask viewAsk
	cmd := &cobra.Command{
		Use:   "save NAME",
		Short: "Save a list of sessions, or a search, under a name",
		Long: "Save filters under a name, in place of your view of that name. With --search the view is a search, in the " +
			"language of ccship search, otherwise a list of sessions. --since 7d stays the last seven days, whenever the " +
			"view is shown.",
		Example: "  ccship sessions views save \"Broken shop\" --project shop --failed --since 7d\n" +
			"  ccship sessions views save Timeouts --search 'deadline exceeded kind:error,result'",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := ask.check(); err != nil {
				return err
			}
			return a.onKeeper(cmd, func(ctx context.Context, l *library.Library, keeper remote.Keeper) error {
				q, err := l.PageQuery(ctx, ask.Filter, ask.since)
				if err != nil {
					return err
				}
				page := "sessions"
				if ask.words != "" {
					page, q = "search", url.Values{"q": {ask.words}}
				}
				v, err := keeper.SaveView(ctx, args[0], page, q)
				if err != nil {
					return err
				}
				if !a.JSON {
					a.Say("`ccship sessions views show %q` shows it, and so does this address", v.Name)
					return a.Print(term.Printable(v.URL) + "\n")
				}
				return a.printViews([]remote.SavedView{v})
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&ask.words, "search", "", "a search for these `words`")
	f.StringVar(&ask.Project, "project", "", "only of this project, by its `name`")
	f.StringVar(&ask.Machine, "machine", "", "only of this `machine`: its host name, or the beginning of its id")
	f.StringVar(&ask.since, "since", "", "only since then: 2026-11-01 or 7d")
	f.StringVar(&ask.Text, "text", "", "only with this `text` in title, first prompt, project or id")
	servedFlags(cmd, &ask.Filter)
	a.AddJSON(cmd)
	return cmd
}

func (q *viewAsk) check() error {
	const see = "see `ccship sessions views save --help`"
	f := q.Filter
	switch {
	case !slices.Contains([]string{"", "cost", "tokens", "time"}, f.Most):
		return control.Usage("--most must be cost, tokens or time", see)
	case !days.MatchString(q.since):
		return control.Usage("--since of a view is a day such as 2026-11-01, or 7d", see)
	case q.words != "" && (f.Text+f.Project+f.Machine+q.since != "" || f.Served()):
		return control.Usage("a search has its filters in its words", "for example --search 'cart project:shop after:7d'")
	}
	return nil
}

func (a verbs) removeView() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rm NAME",
		Short: "Remove a saved view; the sessions in it stay",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onKeeper(cmd, func(ctx context.Context, _ *library.Library, keeper remote.Keeper) error {
				err := keeper.RemoveView(ctx, args[0])
				switch {
				case remote.Is(err, control.CodeNoSession):
					return noView(args[0])
				case err != nil:
					return err
				case a.JSON:
					return a.printViews(nil)
				}
				a.Say("removed the view %q", args[0])
				return nil
			})
		},
	}
	a.AddJSON(cmd)
	return cmd
}
