package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// manualPage is one program's page in section 1, written from what the program says with --help, of itself and of every
// subcommand: no generator is linked into it. Help that is not understood is an error rather than left out.
type manualPage struct {
	Program string    // path of the program that is asked; it must run on this machine
	Version string    // shown in the footer
	Date    time.Time // shown in the footer; the same date gives the same bytes
}

// Write returns the page as roff: what Markdown returns, as md2man formats it, between the head that man expects and
// the sections that help does not have. It is called in the module's root.
func (p manualPage) Write(ctx context.Context) (string, error) {
	root, err := p.ask(ctx)
	if err != nil {
		return "", err
	}
	body, err := p.Markdown(ctx)
	if err != nil {
		return "", err
	}
	_, commands, _ := strings.Cut(body, "\n## ") // without its title, and who writes it
	commands = strings.Replace(commands, "[configuration](configuration.md)", "`ccship config --help`", 1)
	name, _, _ := strings.Cut(root.usage[0], " ")
	tool, err := toolPath(ctx, "go-md2man")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, tool)
	cmd.Stdin = strings.NewReader(fmt.Sprintf("%% %s 1 %q %q %q\n\n# NAME\n\n%s - %s\n\n# SYNOPSIS\n\n**%s**\n\n## %s",
		strings.ToUpper(name), p.Date.UTC().Format(time.DateOnly), name+" "+p.Version, "User Commands", name, root.about,
		strings.Join(root.usage, "**\n\n**"), commands))
	page, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go-md2man: %w%s", err, reason(err))
	}
	more, err := os.ReadFile(filepath.Join("packaging", "release", name+".roff"))
	if err != nil {
		return "", err
	}
	hyphens := strings.NewReplacer(`\-`, `\-`, "-", `\-`) // must stay what they are when copied
	return hyphens.Replace(string(page)) + string(more), nil
}

// ask runs a command with --help, in an environment in which defaults are the same everywhere.
func (p manualPage) ask(ctx context.Context, command ...string) (help, error) {
	args := append(slices.Clone(command), "--help")
	if len(command) == 0 {
		args = []string{"help", "all"} // the program's own help may be a first page
	}
	cmd := exec.CommandContext(ctx, p.Program, args...)
	cmd.Env = []string{"HOME=~", "NO_COLOR=1"}
	out, err := cmd.Output()
	if err != nil {
		return help{}, fmt.Errorf("%s %s --help: %w", p.Program, strings.Join(command, " "), err)
	}
	h, err := parseHelp(string(out))
	if err != nil {
		return h, fmt.Errorf("read %s %s --help: %w", p.Program, strings.Join(command, " "), err)
	}
	return h, nil
}

func withoutHelp(flags []item) []item {
	var kept []item
	for _, flag := range flags {
		if !strings.HasPrefix(flag.name, "-h, --help") {
			kept = append(kept, flag)
		}
	}
	return kept
}
