package term

import (
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// mostColumns is how long a line of help becomes on a wide terminal.
const mostColumns = 100

// Dress gives a program's commands their help. It comes after the last command was added.
func Dress(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Short = "Show the help of a command"
			c.Long = "Show the help of a command, as its flag --help does."
		}
	}
	each(root, func(c *cobra.Command) {
		c.Flags().VisitAll(placeholder)
		c.PersistentFlags().VisitAll(placeholder)
	})
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		text := strings.TrimRight(c.Long, " \n")
		if text == "" {
			text = c.Short
		}
		text += "\n\n" + c.UsageString()
		width := columns(c.OutOrStdout())
		if width > 0 && c.HasParent() { // a person reads it: the same eight lines below every command hide what matters
			text = global.ReplaceAllString(text, "Flags of every command: `"+root.Name()+" --help`\n")
		}
		_, _ = io.WriteString(c.OutOrStdout(), fit(text, width)) // nobody is left to tell
	})
}

// global is the list of the flags of every command.
var global = regexp.MustCompile(`(?m)^Global Flags:\n(?:  .*\n)+`)

// each calls do for a command and all below it.
func each(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, below := range c.Commands() {
		each(below, do)
	}
}

// columns is the width of the terminal behind w, at most what reads well; 0 where there is none.
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
