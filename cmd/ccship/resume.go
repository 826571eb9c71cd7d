package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/screen"
	"github.com/ccship/ccship/cmd/ccship/setup"
	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/transcript"
)

func (a *app) resumeCommand() *cobra.Command {
	var w library.ResumeRequest
	var here bool
	cmd := &cobra.Command{
		Use:   "resume [SESSION|WORDS…]",
		Short: "Resume a conversation of any machine here",
		Long: "Resume a conversation with Claude Code: the one of that id, or the one whose title, first prompt " +
			"or project has the words; without either, the latest of the current folder. One of another machine is " +
			"brought here first, with its agents and files, into its own folder if this machine has it, or with " +
			"--here into the current one. Working directories in the records become those of this machine; what was " +
			"said stays. Without a terminal the command that resumes is printed instead.\n\nOf several machines' " +
			"copies the one written last is brought. If this disk has lines that the copy lacks, nothing is " +
			"written, unless with --force.",
		Example: "  ccship resume 3f2a9c01\n  ccship resume rounding cart --here\n" +
			"  eval \"$(ccship resume 3f2a9c01)\"",
		ValidArgsFunction: a.completeSession,
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, args []string) (err error) {
			if here {
				if w.Folder, err = os.Getwd(); err != nil {
					return fmt.Errorf("find the current folder: %w", err)
				}
			}
			return a.resumeSession(ctx, w, args)
		}),
	}
	cmd.Flags().BoolVar(&here, "here", false, "resume it in the current folder, not in the one that it had")
	cmd.Flags().StringVar(&w.User, "user", "", userUsage)
	cmd.Flags().StringVar(&w.Machine, "machine", "",
		"the copy of this `machine`: its host name, or the beginning of its id")
	cmd.Flags().BoolVar(&w.Force, "force", false,
		"bring it even while it is live, and move a longer transcript on this disk aside")
	a.AddJSON(cmd)
	return cmd
}

// resumeSession brings a session, says on stderr what was done, and resumes it, or prints the command that does.
func (a *app) resumeSession(ctx context.Context, w library.ResumeRequest, args []string) error {
	l, err := a.library(ctx)
	if err != nil {
		return err
	}
	if w.Session, err = meant(ctx, l, args); err != nil {
		return err
	}
	done, err := bring(ctx, l, w)
	if err != nil {
		return err
	}
	command := show.ResumeCommand(done.Folder, done.Session)
	if a.JSON {
		return a.PrintJSON(struct {
			SchemaVersion int    `json:"schema_version"`
			Command       string `json:"command"`
			library.Resumed
		}{control.SchemaVersion, command, done})
	}
	if done.Machine != "" {
		for _, line := range show.Resumed(done) {
			a.Say("%s", line)
		}
	}
	if !a.interactive() {
		return a.Print(command + "\n")
	}
	return startClaude(done.Folder, done.Session)
}

// bring brings a session here. One that is here needs no server, unless another folder, machine or user is asked for.
func bring(ctx context.Context, l *library.Library, w library.ResumeRequest) (library.Resumed, error) {
	if w.Folder+w.Machine+w.User != "" || w.Force {
		return l.Resume(ctx, w)
	}
	chosen, err := screen.Bring(ctx, l, w, func() string { return "" })
	if err != nil || chosen.Brought != nil {
		return *cmp.Or(chosen.Brought, &library.Resumed{}), err
	}
	return library.Resumed{Session: chosen.Session, From: chosen.Folder, Folder: chosen.Folder}, nil
}

// interactive reports whether a person at a terminal types and reads.
func (a *app) interactive() bool {
	_, out := term.Columns(a.Stdout)
	return out && term.IsTerminal(os.Stdin) && os.Getenv("TERM") != "dumb"
}

// startClaude becomes Claude Code, which resumes a session in a folder.
func startClaude(folder, session string) error {
	claude, err := exec.LookPath("claude")
	if err == nil {
		err = os.Chdir(folder)
	}
	if err != nil {
		return control.Failed("the session is here, and Claude Code does not start: "+err.Error(),
			"type `"+show.ResumeCommand(folder, session)+"` where it does")
	}
	_ = os.Setenv("PWD", folder) // it has no other value that is true
	return become(claude, []string{"--resume", session})
}

// anID is what can only be an id, or the beginning of one.
var anID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{4,8}(-[0-9a-f-]*)?$`) })

// meant returns the session that an id, the beginning of one, or words name; without them, the latest of this folder.
func meant(ctx context.Context, l *library.Library, args []string) (string, error) {
	text := strings.Join(args, " ")
	if len(args) == 1 {
		found, err := l.Find(ctx, text)
		if err == nil {
			return found.Session, nil
		}
		code := show.Describe(err).Code
		if code != control.CodeNoSession && code != control.CodeUsage || anID().MatchString(text) {
			return "", err
		}
	}
	const candidates = 5
	f := library.Filter{Text: text, Limit: candidates}
	if text == "" {
		var err error
		if f.Project, err = os.Getwd(); err != nil {
			return "", fmt.Errorf("find the current folder: %w", err)
		}
		f.Limit = 1
	}
	items, more, err := l.List(ctx, f)
	switch {
	case len(items) == 1 && (text == "" || !more):
		return items[0].Session, nil
	case err != nil:
		return "", err
	case len(items) == 0 && text == "":
		return "", control.NoSession("no conversation of this folder is known", "`ccship list` lists all")
	case len(items) == 0:
		return "", control.NoSession(fmt.Sprintf("no conversation has %q in its title", text),
			"`ccship search` finds what was said in one, `ccship list` lists all")
	}
	names := make([]string, len(items))
	for i, s := range items {
		names[i] = s.Session[:min(len(s.Session), 8)] + " " + term.Cut(term.Printable(s.Title), 40)
	}
	return "", control.Ambiguous(fmt.Sprintf("%q is in several: %s", text, strings.Join(names, "; ")),
		"name one by its id")
}

// userUsage describes the flag that names whose session is meant.
const userUsage = "of this `user` of the server; needed when several have a session of that id"

// library is the user's sessions: those of the service, or of `ccship up` while only that runs.
func (a *app) library(ctx context.Context) (*library.Library, error) {
	c, err := a.running(ctx)
	if err != nil {
		return nil, err
	}
	return newLibrary(c)
}

// running is the configuration of the service, or of `ccship up` while only that runs.
func (a *app) running(ctx context.Context) (config.Config, error) {
	c, err := a.Config()
	if err != nil {
		return c, err
	}
	client, _, away := control.Reach(ctx, show.Sockets(c))
	if away != nil || c.OriginOf("socket") != config.FromDefault || client.Path() != show.UpSocket(c) {
		return c, nil //nolint:nilerr // without a daemon the configuration decides
	}
	home := setup.Home{Dir: show.UpDir(c)}
	address, err := os.ReadFile(home.File("listen"))
	if err != nil {
		return c, fmt.Errorf("read address of `ccship up`: %w", err)
	}
	return home.Config(c, strings.TrimSpace(string(address)))
}

// onServer is the library of a command that asks the server. It completes the session that the command names, if any.
func (a *app) onServer(ctx context.Context, session *string) (*library.Library, error) {
	l, err := a.library(ctx)
	if err != nil {
		return nil, err
	}
	if l.Server == nil {
		return nil, library.NoServer()
	}
	if *session == "" {
		return l, nil
	}
	found, err := l.Find(ctx, *session)
	if err != nil {
		return nil, err
	}
	*session = found.Session
	return l, nil
}

// newLibrary reads the sessions on disk and on the user's own server, as the daemon would see them; no daemon needs to
// run.
func newLibrary(c config.Config) (*library.Library, error) {
	self, err := sys.LoadIdentity(c.StateDir)
	if err != nil {
		return nil, err
	}
	prices, err := priceList(c)
	if err != nil {
		prices = &transcript.Prices{} // costs are not known; `ccship usage` says why
	}
	finder := project.NewFinder()
	finder.Home = c.Home()
	l := &library.Library{Roots: c.Roots, Machine: self.Name, Prices: prices, Repository: func(cwd string) string {
		policy, _ := finder.Find(cwd) // what cannot be read has no repository
		return policy.Top()
	}}
	if c.ServerURL == "" {
		return l, nil
	}
	l.Server, err = setup.Reader(c)
	return l, err
}

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
