package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/history"
	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/transcript/provenance"
)

func (a *app) whyCommand() *cobra.Command {
	var how whyFlags
	cmd := &cobra.Command{
		Use:   "why FILE:LINE | COMMIT | A..B | #PR",
		Short: "Show the prompts behind a line, a commit or a pull request",
		Long: "Name the conversations that wrote lines of a file or of commits, and the prompts that asked for " +
			"them. A line counts when a tool call of Claude put exactly that text into the same file before the " +
			"commit; white space and quotes may differ. Everything else is not proven, with the reason. The server " +
			"gets paths and hashes of lines, never their text; a line that holds a secret is left out.\n\nA pull " +
			"request is #12 or its address. Its commits come from what is in the clone; nothing is fetched.",
		Example: "  ccship why shop/cart.go:118\n  ccship why shop/cart.go:118-130\n  ccship why HEAD~3..\n" +
			"  ccship why https://github.com/kim/shop/pull/12 --json",
		Args: cobra.ExactArgs(1),
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, args []string) error {
			return a.why(ctx, args[0], how)
		}),
	}
	cmd.Flags().BoolVar(&how.offline, "offline", false, "look only in the transcripts on this machine's disk")
	cmd.Flags().BoolVar(&how.link, "link", false,
		"print the address of a page that shows the commits to whoever may log in")
	cmd.Flags().BoolVar(&how.note, "note", false,
		"write the addresses of the prompts into the commits' notes (refs/notes/ccship)")
	a.AddJSON(cmd)
	return cmd
}

type whyFlags struct{ offline, link, note bool }

func (a *app) why(ctx context.Context, arg string, how whyFlags) error {
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	target, err := history.ParseTarget(dir, arg)
	if err != nil {
		return err
	}
	if target.File != "" && (how.link || how.note) {
		return control.Usage("--link and --note take commits", "name the commit that has the line")
	}
	if target.File != "" { // a file in a submodule is in another repository than its folder's
		target.File, err = filepath.Abs(target.File)
		if err == nil {
			target.File, err = filepath.EvalSymlinks(target.File)
		}
		if err != nil {
			return control.Usage(err.Error(), "name a file that can be read")
		}
		dir = filepath.Dir(target.File)
	}
	if how.link && how.note {
		return control.Usage("--link asks nobody, so that there is nothing to note", "one of --link and --note")
	}
	q, err := a.question(ctx, dir, how)
	if err != nil {
		return err
	}
	if target.File != "" {
		return q.lines(ctx, target)
	}
	return q.commits(ctx, target.Name)
}

// question is one call of `ccship why`.
type question struct {
	*app
	repo    *history.Repo
	library *library.Library
	how     whyFlags
	project func(cwd, folder string) string
	own     string // the repository's project
}

func (a *app) question(ctx context.Context, dir string, how whyFlags) (q question, err error) {
	q = question{app: a, how: how}
	if q.repo, err = history.Open(ctx, dir); err != nil {
		return q, err
	}
	c, err := a.Config()
	if err != nil {
		return q, err
	}
	if q.repo.Mask, err = maskIn(&c, dir); err != nil {
		return q, err
	}
	none := ""
	if how.offline {
		q.library, err = a.library(ctx)
	} else {
		q.library, err = a.onServer(ctx, &none)
	}
	if err != nil {
		return q, err
	}
	finder := project.NewFinder()
	q.project = func(cwd, folder string) string {
		policy, _ := finder.Find(cwd) // of a folder that cannot be read, its name
		return project.Hash(cwd, folder, policy, c.TrustedProjects)
	}
	q.own = q.project(q.repo.Top, "")
	return q, nil
}

// maskIn returns how secrets in files of a folder are masked.
func maskIn(c *config.Config, dir string) (func(string) string, error) {
	key, err := c.RedactKey()
	if err != nil {
		return nil, err
	}
	all, err := c.MaskersOf(key)
	if err != nil {
		return nil, err
	}
	m := all.Of(dir)
	return func(text string) string {
		masked, _ := m.File("", []byte(text))
		return string(masked)
	}, nil
}

// maxAsked is how many lines of commits one request has at most, unless one commit has more.
const maxAsked = 4000

// ask tells what is known of commits.
func (q question) ask(ctx context.Context, commits []provenance.Commit, lines bool) (out []provenance.Answer,
	err error) {
	for i := range commits {
		commits[i].Project = q.own
	}
	if q.how.offline {
		w, err := q.library.Written(commits, q.project)
		if err != nil {
			return nil, err
		}
		for _, c := range commits {
			out = append(out, w.Answer(c, lines))
		}
		return out, nil
	}
	for len(commits) > 0 {
		n, size := 0, 0
		for n < len(commits) && (n == 0 || size < maxAsked) {
			for _, f := range commits[n].Files {
				size += len(f.Lines)
			}
			n++
		}
		some, err := q.library.Server.Why(ctx, commits[:n], lines)
		if err != nil {
			return nil, err
		}
		out, commits = append(out, some...), commits[n:]
	}
	return out, nil
}

// commits answers about commits.
func (q question) commits(ctx context.Context, name string) error {
	names, err := q.repo.Commits(ctx, name)
	if err != nil {
		return err
	}
	asked := make([]provenance.Commit, 0, len(names))
	for _, commit := range names {
		f, err := q.repo.Facts(ctx, commit)
		if err != nil {
			return err
		}
		asked = append(asked, f.Commit)
	}
	if q.how.link {
		return q.printLink(asked)
	}
	answers, err := q.ask(ctx, asked, false)
	if err != nil {
		return err
	}
	for i := range answers {
		if text := show.WhyNote(&answers[i]); q.how.note && text != "" {
			if err := q.repo.Note(ctx, names[i], text); err != nil { // whatever commit the server says
				return err
			}
		}
	}
	if q.JSON {
		commits := slices.Concat([]provenance.Answer{}, answers) // never null
		return q.PrintJSON(library.Why{SchemaVersion: control.SchemaVersion, Commits: commits})
	}
	return q.Print(q.View().WhyCommits(answers))
}

// printLink prints the address of a page that answers. The address has what the question has: hashes of lines.
func (q question) printLink(commits []provenance.Commit) error {
	if q.library.Server == nil {
		return library.NoServer()
	}
	for i := range commits {
		commits[i].Project = q.own
	}
	text, ok, err := provenance.Link(commits)
	if err != nil {
		return err
	}
	if !ok {
		return control.Usage("the commits are too large for an address", "link to fewer, or to one of them")
	}
	return q.Print(q.library.Server.Base.String() + "/why?q=" + text + "\n")
}

// lines answers about lines of a file. Commits that only moved or formatted a line are passed.
func (q question) lines(ctx context.Context, t history.Target) error {
	list, err := q.repo.Blame(ctx, "", t.File, t.From, t.To)
	if err != nil {
		return control.Usage(err.Error(), "FILE:LINE, with a line that a file in the repository has")
	}
	facts := map[string]*history.Facts{}
	for i := range list {
		for more := true; more; {
			b := list[i]
			if facts[b.Commit] == nil {
				f, err := q.repo.Facts(ctx, b.Commit)
				if err != nil {
					return err
				}
				facts[b.Commit] = &f
			}
			if list[i], more, err = q.repo.Passed(ctx, facts[b.Commit], b); err != nil {
				return err
			}
		}
	}
	var asked []provenance.Commit
	at := map[string]int{}
	for _, b := range list {
		if _, ok := at[b.Commit]; !ok {
			at[b.Commit] = len(asked)
			asked = append(asked, facts[b.Commit].Commit)
		}
	}
	answers, err := q.ask(ctx, asked, true)
	if err != nil {
		return err
	}
	out := make([]library.WhyLine, len(list))
	for i, b := range list {
		out[i] = library.WhyLineOf(&answers[at[b.Commit]], b.Path, b.Line)
		out[i].Line, out[i].Commit, out[i].Steps, out[i].Text = b.Number, b.Commit, b.Steps, b.Text
	}
	switch {
	case q.JSON:
		return q.PrintJSON(library.WhyLines{SchemaVersion: control.SchemaVersion, Lines: out})
	case t.To == 0:
		return q.Print(q.View().WhyFile(filepath.Base(t.File), out))
	}
	return q.Print(q.View().WhyLines(out))
}
