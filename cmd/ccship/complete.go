package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/library"
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
	client, err := a.DaemonClient(cmd.Context())
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
			about := fmt.Sprintf("%s, line %d: %s", cmp.Or(l.Session, l.Path),
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

// offered limits what a completion offers, and how long it takes.
const (
	offered      = 200
	completeTime = 2 * time.Second
)

// offer lists conversations for a completion.
func (a *app) offer(ctx context.Context) []library.Item {
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	l, err := a.library(ctx)
	if err != nil {
		return nil
	}
	items, _, _ := l.List(ctx, library.Filter{Limit: offered}) // those on disk, if the server does not answer
	return items
}

// completeSession offers the ids of conversations, with their titles. What was begun may be the beginning of an id, or
// a word of a title.
func (a *app) completeSession(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	for _, s := range a.offer(cmd.Context()) {
		title := term.Printable(cmp.Or(s.Title, s.Project))
		if strings.HasPrefix(s.Session, begun) || len(begun) > 1 && holds(title, begun) {
			ids = append(ids, cobra.CompletionWithDesc(term.Printable(s.Session), term.Cut(title, 60)))
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

func holds(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// completeProjects gives --project the names of projects.
func (a *app) completeProjects(cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("project", // the flag exists
		func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return a.projectNames(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
		})
}

// projectNames are those of the projects that were worked on last.
func (a *app) projectNames(ctx context.Context) (names []string) {
	for _, s := range a.offer(ctx) {
		if name := term.Printable(s.Project); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// completeFlag gives a flag its words, of which several may be joined by commas.
func (a *app) completeFlag(cmd *cobra.Command, flag string, words []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, // the flag exists
		func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			before := begun[:strings.LastIndexByte(begun, ',')+1]
			var out []string
			for _, w := range words {
				out = append(out, before+w)
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		})
}
