package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
)

// excludeKey is the option that the verbs edit.
const excludeKey = "exclude_projects"

func (a *app) excludeCommand() *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "exclude [PATTERN…]",
		Short: "Keep projects on this machine",
		Long: "Keep the conversations of folders, and of all folders below them, on this machine only, by path or " +
			"a pattern such as '~/clients/*' or '**/private'. Without one, list what is excluded, why, and how many " +
			"transcripts. With --rm, deliver them again.\n\nA file named .ccshipignore in a folder does the same. " +
			"What was already sent stays on the server.",
		Example: "  ccship exclude .\n  ccship exclude '~/clients/*' '**/private'\n  ccship exclude --rm .",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if !remove {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return a.completePatterns(cmd, args, begun)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case remove && len(args) == 0:
				return control.Usage("--rm names nothing", "`ccship exclude` shows what is excluded")
			case remove:
				return a.editExcludes(cmd.Context(), nil, args)
			case len(args) > 0:
				return a.editExcludes(cmd.Context(), args, nil)
			}
			excludes, err := a.excludes(cmd.Context())
			return show.Answer(&a.App, excludes, err, show.Excludes)
		},
	}
	cmd.Flags().BoolVar(&remove, "rm", false, "stop excluding: their conversations are delivered again")
	a.AddJSON(cmd)
	return cmd
}

// excludes asks the daemon; without one the configuration alone answers.
func (a *app) excludes(ctx context.Context) (control.Excludes, error) {
	client, err := a.DaemonClient(ctx)
	if err == nil {
		return client.Excludes(ctx)
	}
	if !errors.Is(err, control.ErrNotRunning) {
		return control.Excludes{}, err
	}
	c, err := a.Config()
	if err != nil {
		return control.Excludes{}, err
	}
	e := control.Excludes{
		SchemaVersion: control.SchemaVersion, Config: c.Path, Origin: string(c.OriginOf(excludeKey)),
		Patterns: []control.Exclusion{},
	}
	for _, pattern := range c.ExcludeProjects {
		e.Patterns = append(e.Patterns, control.Exclusion{Pattern: pattern})
	}
	return e, nil
}

// editExcludes edits the configuration file and makes a running daemon read it.
func (a *app) editExcludes(ctx context.Context, add, remove []string) error {
	path, err := a.ConfigPath()
	if err != nil {
		return err
	}
	for _, list := range [][]string{add, remove} {
		for i := range list {
			if list[i], err = folderPattern(list[i]); err != nil {
				return err
			}
		}
	}
	edit, err := config.EditList(path, excludeKey, add, remove, nil)
	if err != nil {
		return err
	}
	if len(edit.Missing) > 0 {
		return control.NewError(control.CodeNoPattern, strings.Join(edit.Missing, ", ")+" is not excluded in "+path,
			"`ccship exclude` shows what is excluded, and why")
	}
	o, _ := config.LookupOption(excludeKey)
	if os.Getenv(o.Env()) != "" {
		a.Say("%s in the environment wins over %s", o.Env(), path)
	}
	for _, pattern := range edit.Added {
		a.Say("%s is excluded in %s", pattern, path)
	}
	for _, pattern := range edit.Removed {
		a.Say("%s is no longer excluded in %s", pattern, path)
	}
	if len(edit.Added)+len(edit.Removed) == 0 {
		a.Say("%s is excluded already in %s", strings.Join(add, ", "), path)
	}
	if err := a.takeOver(ctx, path, excludeKey); err != nil || !a.JSON {
		return err
	}
	excludes, err := a.excludes(ctx)
	if err != nil {
		return err
	}
	return a.PrintJSON(excludes)
}

// folderPattern returns the pattern of what someone typed. A folder that exists means itself, whatever characters its
// name has; any other path is a pattern relative to the current folder.
func folderPattern(text string) (string, error) {
	if text == "" { // an unset shell variable must not mean the current folder
		return "", control.Usage("the pattern is empty", "name a folder, or . for this one")
	}
	if strings.HasPrefix(text, "~") || strings.HasPrefix(filepath.ToSlash(text), "**/") {
		return text, nil
	}
	abs, err := filepath.Abs(text)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", text, err)
	}
	if info, err := os.Stat(abs); err == nil && info.IsDir() {
		return config.FolderPattern(abs), nil
	}
	if here := strings.TrimSuffix(abs, filepath.Clean(text)); filepath.IsLocal(text) && here != abs {
		return config.FolderPattern(filepath.Clean(here)) + "/" + filepath.ToSlash(filepath.Clean(text)), nil
	}
	return filepath.ToSlash(abs), nil
}
