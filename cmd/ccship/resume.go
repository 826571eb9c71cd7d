package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/screen"
	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
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
