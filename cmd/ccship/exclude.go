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
	cmd := &cobra.Command{
		Use:   "exclude",
		Short: "Keep projects on this machine",
		Long: "Keep the conversations of some folders, and of all folders below them, on this machine only. " +
			"A file named .ccshipignore in a folder does the same; ccship never creates one. " +
			"What was already sent stays on the server.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.excludeAdd(), a.excludeRemove(), a.excludeList())
	return cmd
}

func (a *app) excludeAdd() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "add PATTERN…",
		Short:   "Exclude folders: a path, or a pattern such as '~/clients/*' or '**/private'",
		Example: "  ccship exclude add .\n  ccship exclude add '~/clients/*' '**/private'",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.editExcludes(cmd.Context(), args, nil)
		},
	}
	a.AddJSON(cmd)
	return cmd
}

func (a *app) excludeRemove() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "rm PATTERN…",
		Short:             "Stop excluding folders: their conversations are delivered again",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completePatterns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.editExcludes(cmd.Context(), nil, args)
		},
	}
	a.AddJSON(cmd)
	return cmd
}

func (a *app) excludeList() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what is excluded, why, and how many transcripts",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			excludes, err := a.excludes(cmd.Context())
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(excludes)
			}
			return a.Print(show.Excludes(excludes))
		},
	}
	a.AddJSON(cmd)
	return cmd
}

// excludes asks the daemon; without one the configuration alone answers.
func (a *app) excludes(ctx context.Context) (control.Excludes, error) {
	client, _, err := a.DaemonClient(ctx)
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
			"`ccship exclude list` shows what is excluded, and why")
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

// folderPattern is the pattern of what someone typed. A folder that exists means itself, whatever characters its name
// has; any other path is a pattern relative to the current folder.
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
