package term

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Alone is the annotation of a program that says what it does without a command.
const Alone = "alone"

// mostColumns is how long a line of help becomes on a wide terminal.
const mostColumns = 100

// Dress gives a program's commands their help. It comes after the last command was added. With names, the help of the
// program is a first page with these commands alone; `help all` lists all.
func Dress(root *cobra.Command, first ...string) {
	root.SetHelpCommand(helpCommand(root, len(first) > 0))
	root.InitDefaultHelpCmd()
	each(root, func(c *cobra.Command) {
		c.Flags().VisitAll(placeholder)
		c.PersistentFlags().VisitAll(placeholder)
	})
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		if !c.HasParent() && len(first) > 0 {
			write(c, firstPage(root, first))
			return
		}
		write(c, fullHelp(root, c))
	})
}

// helpCommand is `help`; all is a word that it takes where the first page is short.
func helpCommand(root *cobra.Command, short bool) *cobra.Command {
	c := &cobra.Command{Use: "help [COMMAND]", Short: "Show the help of a command", GroupID: lastGroup(root)}
	if short {
		c.Use, c.Short = "help [all|COMMAND]", "Show the help of a command, or of all"
	}
	c.Run = func(c *cobra.Command, args []string) {
		if len(args) == 1 && args[0] == "all" {
			write(c, fullHelp(root, root))
			return
		}
		found, rest, err := root.Find(args)
		if err == nil && len(rest) == 0 {
			found.InitDefaultHelpFlag()
			_ = found.Help() // it writes to where nobody is left to tell
		}
	}
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 1 && args[0] == "all" {
			return nil
		}
		if _, rest, err := root.Find(args); err != nil || len(rest) > 0 {
			return fmt.Errorf("unknown command %q for %q", strings.Join(args, " "), root.Name())
		}
		return nil
	}
	return c
}

// lastGroup returns where the help is listed.
func lastGroup(root *cobra.Command) string {
	groups := root.Groups()
	if len(groups) == 0 {
		return ""
	}
	return groups[len(groups)-1].ID
}

// firstPage returns the help that most people need.
func firstPage(root *cobra.Command, first []string) string {
	var b strings.Builder
	name := root.Name()
	b.WriteString(root.Short + "\n\nUsage:\n  " + name + "\n  " + name + " [command]\n\nCommands:\n")
	if alone := root.Annotations[Alone]; alone != "" {
		b.WriteString("  " + Pad(name, 10) + " " + alone + "\n")
	}
	for _, want := range first {
		if c, _, err := root.Find([]string{want}); err == nil && c != root {
			b.WriteString("  " + Pad(c.Name(), 10) + " " + c.Short + "\n")
		}
	}
	b.WriteString("  " + Pad("help all", 10) + " List every command, and the flags of all\n\n")
	return b.String() + `Use "` + name + ` [command] --help" for more information about a command.` + "\n"
}

// fullHelp returns everything that is known of a command. Flags that it has from the program are named only where a
// program reads them: the same lines below every command hide what matters.
func fullHelp(root, c *cobra.Command) string {
	text := strings.TrimRight(c.Long, " \n")
	if text == "" {
		text = c.Short
	}
	text += "\n\n" + c.UsageString()
	if columns(c.OutOrStdout()) == 0 || !c.HasParent() {
		return text
	}
	everywhere := root.PersistentFlags().FlagUsages()
	return global.ReplaceAllStringFunc(text, func(list string) string {
		var own strings.Builder
		for line := range strings.Lines(list) {
			if known := flagName.FindString(line); known == "" || !strings.Contains(everywhere, known+" ") {
				own.WriteString(line)
			}
		}
		kept := own.String()
		if kept == "Global Flags:\n" {
			kept = ""
		}
		return kept + "Flags of every command: `" + root.Name() + " help all`\n"
	})
}

// flagName finds the name in a line of a list of flags.
var flagName = regexp.MustCompile(`--[a-z-]+`)

// write breaks a help's lines where it is read.
func write(c *cobra.Command, text string) {
	_, _ = io.WriteString(c.OutOrStdout(), fit(text, columns(c.OutOrStdout()))) // nobody is left to tell
}

// global is the list of the flags that a command has from those above it.
var global = regexp.MustCompile(`(?m)^Global Flags:\n(?:  .*\n)+`)

// each calls do for a command and all below it.
func each(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, below := range c.Commands() {
		each(below, do)
	}
}

// columns returns the width of the terminal behind w, at most what reads well; 0 where there is none.
func columns(w io.Writer) int {
	if behind, ok := w.(interface{ Unwrap() io.Writer }); ok {
		w = behind.Unwrap()
	}
	n, ok := Columns(w)
	if !ok {
		return 0
	}
	return min(n, mostColumns)
}

// takes says what flags take whose kind alone, a string or a number, does not.
var takes = map[string]string{
	"since": "when", "until": "when", "kind": "kinds", "user": "name", "name": "text", "session": "id", "file": "path",
	"command": "words", "text": "words", "machine": "name", "format": "kind", "summary": "text", "trigger": "why",
	"server": "URL", "public-url": "URL", "replica": "URL", "store": "URL", "prices": "file", "tls-cert": "file",
	"tls-key": "file", "to": "file", "from": "file", "role": "what", "grace": "duration", "ttl": "duration",
	"max-body": "size", "ingest-memory": "size", "quota-bytes": "size", "bytes": "size", "sessions": "number",
	"listen": "address", "base-path": "path", "trusted-proxies": "list", "owner": "name", "with": "name",
	"project": "name", "log-format": "kind", "log-level": "level", "for": "user", "model": "name", "days": "number",
	"tag": "word", "generation": "number",
}

// placeholder gives a flag one word for what it takes: neither its own name again nor a type of Go.
func placeholder(f *pflag.Flag) {
	kind, usage := pflag.UnquoteUsage(f)
	switch word := takes[f.Name]; {
	case kind == "":
		return // it takes nothing
	case kind == "int" || kind == "int64" || f.Value.Type() == "int" || f.Value.Type() == "int64":
		kind = "number"
	case kind == "strings":
		kind = "list"
	case strings.Contains(kind, " ") && f.Value.Type() != "string":
		kind = f.Value.Type()
	case word != "" && (kind == "string" || kind == f.Name || strings.Contains(kind, " ")):
		kind = word
	default:
		return
	}
	f.Usage, f.Value = strings.ReplaceAll(usage, "`", ""), named{f.Value, kind} // or the next quoted word would be it
	if f.DefValue == "0s" || f.DefValue == "[]" {
		f.DefValue = "" // nothing: pflag knows that of its own types only
	}
}

// named is a flag's value with another word for its kind.
type named struct {
	pflag.Value
	kind string
}

func (n named) Type() string { return n.kind }

// item is a line of a list: what it names, the gap, what it means.
var item = regexp.MustCompile(`^( {2,}\S.*?\S {2,})(\S.*)$`)

// fit breaks the lines of a help at so many columns, in lists below where the meanings begin.
func fit(text string, columns int) string {
	if columns == 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		found := item.FindStringSubmatch(line)
		if found == nil {
			b.WriteString(Hang(line, columns, 0) + "\n")
			continue
		}
		head, hang := found[1], Width(found[1])
		if hang > columns/2 {
			b.WriteString(strings.TrimRight(head, " ") + "\n")
			hang = 8
			head = strings.Repeat(" ", hang)
		}
		about := strings.ReplaceAll(Hang(found[2], columns-hang, 0), "\n", "\n"+strings.Repeat(" ", hang))
		b.WriteString(head + about + "\n")
	}
	return b.String()
}
