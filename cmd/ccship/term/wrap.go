package term

import "strings"

// leastRoom is how many columns a wrapped line has at least: in a narrower window the terminal breaks lines itself.
const leastRoom = 20

// Wrap breaks a text of one line between words, so that its lines fit into so many columns. A word that is too long,
// such as a path, stays whole for the terminal to break, and so does a command between backticks: they are there to be
// copied. 0 columns break nothing.
func Wrap(text string, columns int) []string {
	if columns <= 0 || Width(text) <= columns {
		return []string{text}
	}
	room := max(columns, leastRoom)
	var lines []string
	line := ""
	for _, word := range words(text) {
		switch {
		case line == "":
			line = word
		case line == "→" || line == ">" || Width(line)+1+Width(word) <= room:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// Hang wraps each line of a text, with as many spaces as hang says before what a line continues with, besides those
// that the line begins with.
func Hang(text string, columns, hang int) string {
	if columns <= 0 {
		return text
	}
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		rest := strings.TrimLeft(line, " ")
		begin := len(line) - len(rest)
		for i, part := range Wrap(rest, max(1, columns-begin-hang)) {
			if i == 0 {
				out = append(out, line[:begin]+part)
				continue
			}
			out = append(out, strings.Repeat(" ", begin+hang)+part)
		}
	}
	return strings.Join(out, "\n")
}

// words returns those of a text; a command between backticks is one.
func words(text string) (all []string) {
	open := false
	for _, word := range strings.Fields(text) {
		if open {
			all[len(all)-1] += " " + word
		} else {
			all = append(all, word)
		}
		open = open != (strings.Count(word, "`")%2 == 1)
	}
	return all
}
