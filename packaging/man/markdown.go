package man

import (
	"context"
	"fmt"
	"strings"
)

// Markdown asks the program and returns a page with all its commands, for the documentation. Extra is not in it.
func (p Page) Markdown(ctx context.Context) (string, error) {
	root, err := p.ask(ctx)
	if err != nil {
		return "", err
	}
	name, _, _ := strings.Cut(root.usage[0], " ")
	var b strings.Builder
	fmt.Fprintf(&b, "# Commands of %s\n\n%s. `make docs` writes this page from `%s --help`.\n\n", name, root.about, name)
	if err := p.markdownCommands(ctx, &b, root, []string{name}); err != nil {
		return "", err
	}
	b.WriteString("## Flags of every command\n")
	writeFlags(&b, root.flags)
	return b.String(), nil
}

// markdownCommands writes the subcommands of a command. The first word of path is the program's name.
func (p Page) markdownCommands(ctx context.Context, b *strings.Builder, parent help, path []string) error {
	for _, command := range parent.commands {
		if command.name == "help" {
			continue
		}
		below := append(path[:len(path):len(path)], command.name)
		h, err := p.ask(ctx, below[1:]...)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "%s %s\n\n", strings.Repeat("#", min(len(below), 4)), strings.Join(below, " "))
		fmt.Fprintf(b, "```\n%s\n```\n\n", strings.Join(h.usage, "\n"))
		if command.name == "completion" {
			fmt.Fprintf(b, "%s. One subcommand for each shell: `%s bash --help` says how to load it.\n\n", command.about,
				strings.Join(below, " "))
			continue
		}
		writeParagraphs(b, h.about)
		if h.examples != "" {
			fmt.Fprintf(b, "\n```console\n%s```\n", prompts(h.examples))
		}
		writeFlags(b, withoutHelp(h.flags))
		b.WriteString("\n")
		if err := p.markdownCommands(ctx, b, h, below); err != nil {
			return err
		}
	}
	return nil
}

// writeParagraphs writes a text. Indented lines stay as they are.
func writeParagraphs(b *strings.Builder, text string) {
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
	if len(flags) == 0 {
		return
	}
	b.WriteString("\n| flag | |\n|---|---|\n")
	for _, f := range flags {
		fmt.Fprintf(b, "| `%s` | %s |\n", cell(f.name), cell(f.about))
	}
}

// cell keeps a text within its cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
