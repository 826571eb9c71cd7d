package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode"
)

// manualPage is one program's page in section 1, written from what the program says with --help, of itself and of every
// subcommand: no generator is linked into it. Help that is not understood is an error rather than left out.
type manualPage struct {
	Program string    // path of the program that is asked; it must run on this machine
	Version string    // shown in the footer
	Date    time.Time // shown in the footer; the same date gives the same bytes
	Extra   string    // roff of sections that help does not have
}

// Write asks the program and returns its page as roff.
func (p manualPage) Write(ctx context.Context) (string, error) {
	root, err := p.ask(ctx)
	if err != nil {
		return "", err
	}
	name, _, _ := strings.Cut(root.usage[0], " ")
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 %s %s %s\n", strings.ToUpper(escape(name)), quote(p.Date.UTC().Format(time.DateOnly)),
		quote(name+" "+p.Version), quote("User Commands"))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escape(name), escape(lowerFirst(root.about)))
	b.WriteString(".SH SYNOPSIS\n")
	for i, usage := range root.usage {
		if i > 0 {
			b.WriteString(".br\n")
		}
		fmt.Fprintf(&b, ".B %s\n", escape(usage))
	}
	b.WriteString(".SH COMMANDS\n")
	if err := p.commands(ctx, &b, root, nil); err != nil {
		return "", err
	}
	b.WriteString(".SH OPTIONS\n")
	writeItems(&b, root.flags)
	b.WriteString(p.Extra)
	return b.String(), nil
}

// commands writes the subcommands of the command that path names, each before its own subcommands.
func (p manualPage) commands(ctx context.Context, b *strings.Builder, parent help, path []string) error {
	for _, command := range parent.commands {
		if command.name == "help" {
			continue
		}
		below := append(path[:len(path):len(path)], command.name)
		h, err := p.ask(ctx, below...)
		if err != nil {
			return err
		}
		// A command that only holds others is described by them.
		for _, usage := range h.usage {
			if !strings.HasSuffix(usage, "[command]") {
				fmt.Fprintf(b, ".SS %s\n", quote(strings.TrimSuffix(usage, " [flags]")))
			}
		}
		writeText(b, h.about)
		writeItems(b, withoutHelp(h.flags))
		if h.examples != "" {
			writeText(b, "Examples:\n\n"+h.examples)
		}
		if err := p.commands(ctx, b, h, below); err != nil {
			return err
		}
	}
	return nil
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

// writeItems writes a list of names and meanings.
func writeItems(b *strings.Builder, items []item) {
	for _, i := range items {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", escape(i.name), escape(i.about))
	}
}

// writeText writes paragraphs. Indented lines stay as they are.
func writeText(b *strings.Builder, text string) {
	verbatim := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		indented := strings.HasPrefix(line, "  ")
		switch {
		case indented && !verbatim:
			b.WriteString(".PP\n.nf\n")
		case !indented && verbatim:
			b.WriteString(".fi\n")
		}
		verbatim = indented
		if line == "" {
			b.WriteString(".PP\n")
			continue
		}
		b.WriteString(escape(line) + "\n")
	}
	if verbatim {
		b.WriteString(".fi\n")
	}
}

// escape makes text safe for roff: its own escape character, hyphens that must stay what they are when copied,
// characters beyond ASCII, and lines that would be requests.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, `-`, `\-`, "`", `\(ga`).Replace(text)
	if strings.ContainsFunc(text, beyondASCII) {
		var b strings.Builder
		for _, r := range text {
			if beyondASCII(r) {
				fmt.Fprintf(&b, `\[u%04X]`, r)
				continue
			}
			b.WriteRune(r)
		}
		text = b.String()
	}
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

func beyondASCII(r rune) bool { return r > unicode.MaxASCII }

// quote makes text one argument of a request.
func quote(text string) string { return `"` + strings.ReplaceAll(escape(text), `"`, `\(dq`) + `"` }

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}
