package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/sys"
)

func (a *app) linkCommand() *cobra.Command {
	return show.Group("link", "Link documents to a conversation",
		"A document is a file below the folder that the conversation was started in. Claude learns of it at "+
			"every start, and the server keeps each version that is seen. Links belong to one session; a fork "+
			"begins without any. Without --session: the session that this command runs in, else the one written "+
			"last in this folder or above it.",
		a.linkAdd(), a.linkRemove(), a.linkList())
}

func (a *app) linkAdd() *cobra.Command {
	var secret bool
	cmd := a.linkVerb(&cobra.Command{
		Use:     "add PATH…",
		Short:   "Link files to a session",
		Example: "  ccship link add docs/spec.md docs/design.md",
		Args:    cobra.MinimumNArgs(1),
	}, "linked", func(c *control.Client, ctx context.Context, req control.DocumentRequest) (control.Documents, error) {
		if secret && !personAsks() {
			return control.Documents{}, control.Usage("--allow-secret is for a person at a terminal",
				"run it in a terminal of your own, not in Claude's or in a script")
		}
		req.AllowSecret = secret
		return c.LinkDocument(ctx, req)
	})
	cmd.Flags().BoolVar(&secret, "allow-secret", false,
		"link files with keys and passwords too, such as .env or *.pem; only at a terminal")
	return cmd
}

// personAsks says whether a person typed the command: Claude's shell has no terminal and names itself.
func personAsks() bool { return os.Getenv("CLAUDECODE") == "" && term.IsTerminal(os.Stdin) }

func (a *app) linkRemove() *cobra.Command {
	return a.linkVerb(&cobra.Command{
		Use:               "rm PATH…",
		Short:             "Unlink files; the files and their versions on the server stay",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeLinked,
	}, "no longer linked", (*control.Client).UnlinkDocument)
}

// linkCall is a call to the daemon about a document.
type linkCall func(*control.Client, context.Context, control.DocumentRequest) (control.Documents, error)

// linkVerb makes a command that changes one link after the other. The first that is refused ends it.
func (a *app) linkVerb(cmd *cobra.Command, done string, change linkCall) *cobra.Command {
	session := a.addSession(cmd)
	a.AddJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, name, err := a.linkSession(cmd.Context(), *session)
		if err != nil {
			return err
		}
		here, err := os.Getwd()
		if err != nil {
			return fmt.Errorf("find the current folder: %w", err)
		}
		var list control.Documents
		for _, path := range args {
			req := control.DocumentRequest{Session: name, Path: path, Base: here}
			if list, err = change(client, cmd.Context(), req); err != nil {
				return err
			}
			if !a.JSON {
				a.Say("%s is %s", term.Printable(path), done)
			}
		}
		if a.JSON {
			return a.PrintJSON(list)
		}
		for _, d := range list.Documents {
			if d.Problem != "" {
				a.Say("%s: %s", term.Printable(d.Path), term.Printable(d.Problem))
			}
		}
		return nil
	}
	return cmd
}

func (a *app) linkList() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List a session's documents",
		Args:  cobra.NoArgs,
	}
	session := a.addSession(cmd)
	a.AddJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, name, err := a.linkSession(cmd.Context(), *session)
		if err != nil {
			return err
		}
		list, err := client.Documents(cmd.Context(), name)
		return show.Answer(&a.App, list, err, a.View().Documents)
	}
	return cmd
}

func (a *app) addSession(cmd *cobra.Command) *string {
	return cmd.Flags().String("session", "", "a `session`: its id or a unique prefix of it")
}

// linkSession returns the session that is meant, and says which one it took when it was not named.
func (a *app) linkSession(ctx context.Context, named string) (*control.Client, string, error) {
	client, err := a.DaemonClient(ctx)
	if err != nil || named != "" {
		return client, named, err
	}
	if session := os.Getenv(sessionVariable); session != "" {
		return client, session, nil
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, "", fmt.Errorf("find the current folder: %w", err)
	}
	s, found, err := newestAround(ctx, client, here)
	if err != nil {
		return nil, "", err
	}
	if !found {
		return nil, "", control.NoSession("no session was started in "+here+" or above it",
			"name one with --session; `ccship list` lists them")
	}
	if !a.JSON {
		a.Say("session %s, written last in %s", term.Printable(s.Session), term.Printable(s.Cwd))
	}
	return client, s.Session, nil
}

// newestAround finds the session written last that was started in a folder or above it.
func newestAround(ctx context.Context, client *control.Client, here string) (control.Session, bool, error) {
	real, err := filepath.EvalSymlinks(here)
	if err != nil {
		real = here
	}
	q := control.SessionsQuery{Page: control.Page{Limit: 1000}}
	for {
		list, err := client.Sessions(ctx, q)
		if err != nil {
			return control.Session{}, false, err
		}
		for _, s := range list.Sessions {
			if s.Cwd != "" && (sys.Within(s.Cwd, here) || sys.Within(s.Cwd, real)) {
				return s, true, nil
			}
		}
		if q.Offset = list.Next; list.Next == 0 {
			return control.Session{}, false, nil
		}
	}
}

// completeLinked offers what is linked.
func (a *app) completeLinked(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	session := ""
	if f := cmd.Flags().Lookup("session"); f != nil {
		session = f.Value.String()
	}
	a.JSON = true // no words
	client, name, err := a.linkSession(cmd.Context(), session)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := client.Documents(cmd.Context(), name)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var paths []string
	for _, d := range list.Documents {
		paths = append(paths, term.Harmless(filepath.Join(list.Cwd, filepath.FromSlash(d.Path))))
	}
	return paths, cobra.ShellCompDirectiveNoFileComp
}
