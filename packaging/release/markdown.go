package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Markdown asks the program and returns a page with all its commands, for the documentation. Flags that say the same in
// several commands are described once, at the top.
func (p manualPage) Markdown(ctx context.Context) (string, error) {
	root, err := p.ask(ctx)
	if err != nil {
		return "", err
	}
	name, _, _ := strings.Cut(root.usage[0], " ")
	all, err := p.collect(ctx, root, []string{name})
	if err != nil {
		return "", err
	}
	most, shared := sharedFlags(all)
	var b strings.Builder
	fmt.Fprintf(&b, "# Commands of %s\n\n%s. `make docs` writes this page from `%s --help`.\n", name, root.about, name)
	b.WriteString("\n## Flags of every command\n")
	writeFlags(&b, root.flags)
	if len(most) > 0 {
		b.WriteString("\n## Flags of most commands\n")
		writeFlags(&b, most)
	}
	if len(shared) > 0 {
		b.WriteString("\n## Flags of several commands\n")
		writeFlags(&b, shared)
	}
	for i := range all {
		all[i].flags = without(all[i].flags, most)
	}
	for i := range all {
		all[i].write(&b, shared, all)
	}
	return b.String(), nil
}

// askHelp is one command and its help. The first word of path is the program's name.
type askHelp struct {
	path []string
	help
}

func (c askHelp) name() string { return strings.Join(c.path, " ") }

// collect asks for all commands below parent, each before its own subcommands.
func (p manualPage) collect(ctx context.Context, parent help, path []string) ([]askHelp, error) {
	var all []askHelp
	for _, item := range parent.commands {
		if item.name == "help" {
			continue
		}
		below := append(path[:len(path):len(path)], item.name)
		h, err := p.ask(ctx, below[1:]...)
		if err != nil {
			return nil, err
		}
		h.flags = withoutHelp(h.flags)
		all = append(all, askHelp{below, h})
		children, err := p.collect(ctx, h, below)
		if err != nil {
			return nil, err
		}
		all = append(all, children...)
	}
	return all, nil
}

// sharedFlags returns the flags that more than half of the commands with flags have, and those that at least three have
// with the same meaning, sorted; of each name, the meaning that most commands have.
func sharedFlags(all []askHelp) (most, shared []item) {
	count, best, taking := map[item]int{}, map[string]item{}, 0
	for _, c := range all {
		taking += min(1, len(c.flags))
		for _, f := range c.flags {
			if count[f]++; count[f] >= 3 && count[f] > count[best[f.name]] {
				best[f.name] = f
			}
		}
	}
	for _, f := range slices.SortedFunc(maps.Values(best), func(a, b item) int {
		return strings.Compare(a.name,
			b.name)
	}) {
		if 2*count[f] > taking {
			most = append(most, f)
		} else {
			shared = append(shared, f)
		}
	}
	return most, shared
}

// write writes a command's section: its form as the heading, its text, its examples, its flags that no other place
// describes.
func (c askHelp) write(b *strings.Builder, shared []item, all []askHelp) {
	fmt.Fprintf(b, "\n%s %s\n\n", strings.Repeat("#", min(len(c.path), 4)), c.form())
	writeParagraphs(b, c.about)
	if c.examples != "" {
		fmt.Fprintf(b, "\n```console\n%s```\n", prompts(c.examples))
	}
	flags, like := c.flags, c.superset(all)
	if like != nil {
		flags = without(flags, like.flags)
	}
	writeFlags(b, without(flags, shared))
	var also []string
	for _, f := range shared {
		if slices.Contains(flags, f) {
			also = append(also, "`"+f.name+"`")
		}
	}
	if like != nil {
		also = append(also, "all flags of `"+like.name()+"`")
	}
	if len(also) > 0 {
		fmt.Fprintf(b, "\nAlso %s.\n", strings.Join(also, ", "))
	}
}

// form returns the command line with its arguments.
func (c askHelp) form() string {
	if len(c.usage) == 0 || strings.HasSuffix(c.usage[0], "[command]") {
		return c.name()
	}
	return strings.TrimSuffix(c.usage[0], " [flags]")
}

// superset returns another command, with many flags, all of which this one has too.
func (c askHelp) superset(all []askHelp) *askHelp {
	for i, other := range all {
		if len(other.flags) > 8 && len(other.flags) < len(c.flags) && len(without(other.flags, c.flags)) == 0 {
			return &all[i]
		}
	}
	return nil
}

// without returns the flags that are not in the list.
func without(flags, list []item) []item {
	var kept []item
	for _, f := range flags {
		if !slices.Contains(list, f) {
			kept = append(kept, f)
		}
	}
	return kept
}

// writeParagraphs writes a text. Indented lines stay as they are. The options have a page of their own.
func writeParagraphs(b *strings.Builder, text string) {
	if before, _, ok := strings.Cut(text, "\n\n  server_url "); ok {
		text = before + "\n\nEvery key: [configuration](configuration.md)."
	}
	verbatim := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if indented := strings.HasPrefix(line, "  "); indented != verbatim && line != "" {
			verbatim = indented
			b.WriteString("```\n")
		}
		b.WriteString(line + "\n")
	}
	if verbatim {
		b.WriteString("```\n")
	}
}

// prompts puts a prompt before each line of the examples.
func prompts(examples string) string {
	var b strings.Builder
	for line := range strings.Lines(examples) {
		b.WriteString("$ " + strings.TrimSpace(line) + "\n")
	}
	return b.String()
}

func writeFlags(b *strings.Builder, flags []item) {
	if len(flags) > 0 {
		b.WriteString("\n")
	}
	for _, f := range flags {
		fmt.Fprintf(b, "- `%s`: %s\n", f.name, f.about)
	}
}

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

// help is what a command says with --help, as cobra lays it out.
type help struct {
	about    string   // the text before "Usage:"
	usage    []string // forms of the command line
	examples string
	commands []item // subcommands
	flags    []item // its own
	global   []item // those of every command
}

// item is a name and what it means.
type item struct{ name, about string }

// parseHelp takes cobra's help apart. A section it does not know is an error.
func parseHelp(text string) (help, error) {
	var h help
	about, rest, ok := strings.Cut("\n"+text, "\nUsage:\n")
	if !ok {
		return h, fmt.Errorf("no usage in %q", text)
	}
	h.about = strings.TrimSpace(about)
	section := "Usage:"
	for line := range strings.Lines(rest) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "", strings.HasPrefix(line, `Use "`) && strings.HasSuffix(line, "for more information about a command."):
			continue
		case line[0] != ' ':
			section = line
			continue
		}
		var err error
		switch {
		case section == "Usage:":
			h.usage = append(h.usage, strings.TrimSpace(line))
		case section == "Aliases:": // the page names commands by their first name
		case section == "Examples:":
			h.examples += line + "\n"
		case section == "Available Commands:", strings.HasSuffix(section, " commands:"):
			h.commands, err = addItem(h.commands, line, " ")
		case section == "Flags:":
			h.flags, err = addItem(h.flags, line, "  ")
		case section == "Global Flags:":
			h.global, err = addItem(h.global, line, "  ")
		default:
			return h, fmt.Errorf("unknown section %q", section)
		}
		if err != nil {
			return h, fmt.Errorf("%s %w", section, err)
		}
	}
	return h, nil
}

// addItem reads a line of a list: a name, the gap, what it means.
func addItem(items []item, line, gap string) ([]item, error) {
	name, about, ok := strings.Cut(strings.TrimSpace(line), gap)
	if !ok {
		return nil, fmt.Errorf("no meaning in %q", line)
	}
	return append(items, item{name, strings.TrimSpace(about)}), nil
}
