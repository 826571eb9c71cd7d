package service

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ccship/ccship/daemon/control"
)

// renderUnit returns the unit for a program: that of the packages, with another command line, and with further writable
// folders where some lie outside those in the unit.
func renderUnit(o Options) (string, error) {
	unit := o.Program.unit(o.System)
	if strings.ContainsAny(o.Binary, `"'\`) || strings.ContainsFunc(o.Binary, func(r rune) bool {
		return r < ' ' ||
			r == 0x7f
	}) {
		return "", control.Failed(fmt.Sprintf("systemd cannot run a path with quotes or backslashes: %q", o.Binary),
			"put "+o.Program.Name+" into another folder")
	}
	command := quoteProgram(o.Binary)
	for _, word := range o.Args {
		command += " " + quoteArgument(word)
	}
	unit, ok := swap(unit, "ExecStart="+o.Program.start, "ExecStart="+command)
	if extra := writable(o); ok && extra != "" {
		line := lineOf(unit, "ReadWritePaths=")
		unit, ok = swap(unit, line, line+extra)
	}
	if !ok {
		return "", fmt.Errorf("render unit: expected lines are missing")
	}
	return unit, nil
}

// swap replaces a whole line.
func swap(text, line, by string) (string, bool) {
	found := strings.Contains("\n"+text, "\n"+line+"\n")
	return strings.Replace(text, line+"\n", by+"\n", 1), found && line != ""
}

// lineOf returns the first line that begins with prefix.
func lineOf(text, prefix string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			return strings.TrimSuffix(line, "\n")
		}
	}
	return ""
}

// writable returns the folders that the unit must make writable besides those it names, as a systemd list of paths.
func writable(o Options) string {
	covered := []string{o.Home, os.Getenv("XDG_RUNTIME_DIR")}
	folders := o.Writable
	if o.System {
		covered = []string{"/home", "/var/home"}
		folders = append([]string{o.Home}, folders...)
	}
	var out strings.Builder
	for _, folder := range folders {
		if !filepath.IsAbs(folder) || slices.ContainsFunc(covered, func(above string) bool { return below(folder, above) }) {
			continue
		}
		covered = append(covered, folder)
		out.WriteString(" " + quoteArgument("-"+folder)) // -: the folder may not exist yet
	}
	return strings.ReplaceAll(out.String(), "$$", "$") // variables are not expanded in paths
}

// below says whether a path is a folder or lies in it.
func below(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return folder != "" && err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// quoteProgram quotes the first word of a command line, in which specifiers are expanded but variables are not.
func quoteProgram(path string) string { return quoteWord(strings.ReplaceAll(path, "%", "%%")) }

// quoteArgument quotes any other word of a command line, in which variables are expanded as well.
func quoteArgument(text string) string {
	return quoteWord(strings.NewReplacer("%", "%%", "$", "$$").Replace(text))
}

// quoteWord quotes what systemd might interpret. It escapes braces by number, because the library that writes the file
// interprets double braces.
func quoteWord(text string) string {
	plain := func(r rune) bool {
		return r > 0x7f || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("/._-+:@%$,=~", r)
	}
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return text
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "{", `\x7b`).Replace(text) + `"`
}
