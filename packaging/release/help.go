package main

import (
	"fmt"
	"strings"
)

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
