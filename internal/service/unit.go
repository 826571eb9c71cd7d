package service

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	kardianos "github.com/kardianos/service"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/packaging"
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

// arguments matches the program in a property list.
var arguments = regexp.MustCompile(`(?s)(<key>ProgramArguments</key>\s*<array>\n).*?(\t</array>)`)

// renderAgent returns the property list for a program: that of the packages, with other arguments.
func renderAgent(o Options) (string, error) {
	var list strings.Builder
	for _, word := range append([]string{o.Binary}, o.Args...) {
		escaped, err := plistText(word)
		if err != nil {
			return "", err
		}
		list.WriteString("\t\t<string>" + escaped + "</string>\n")
	}
	at := arguments.FindStringSubmatchIndex(o.Program.agent)
	if at == nil {
		return "", fmt.Errorf("render agent: no arguments to replace")
	}
	log, err := plistText(o.LogFile)
	rest := strings.ReplaceAll(o.Program.agent[at[4]:], packaging.AgentLog, log)
	return o.Program.agent[:at[3]] + list.String() + rest, err
}

// plistText returns a text as a property list spells it. Braces are escaped because the library that writes the file
// interprets them.
func plistText(text string) (string, error) {
	var escaped strings.Builder
	if err := xml.EscapeText(&escaped, []byte(text)); err != nil {
		return "", fmt.Errorf("render agent: %w", err)
	}
	return strings.ReplaceAll(escaped.String(), "{", "&#123;"), nil
}

// programOfAgent returns the first of the arguments in a property list; "" when there are none.
func programOfAgent(text string) string {
	program := regexp.MustCompile(`(?s)<key>ProgramArguments</key>\s*<array>\s*(<string>.*?</string>)`)
	found := program.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	var path string
	if err := xml.Unmarshal([]byte(found[1]), &path); err != nil {
		return ""
	}
	return path
}

// OwnPath returns the path of this program that an upgrade keeps: the one it was called by, if that leads to this
// program. Package managers put a link there, and each version of the program elsewhere.
func OwnPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find own program: %w", err)
	}
	called, err := exec.LookPath(os.Args[0])
	if err == nil {
		called, err = filepath.Abs(called)
	}
	one, errOne := os.Stat(self)
	other, errOther := os.Stat(called)
	if err == nil && errOne == nil && errOther == nil && os.SameFile(one, other) {
		return called, nil
	}
	return self, nil
}

// answerTime limits how long a manager may take to answer.
const answerTime = 10 * time.Second

// ask runs a manager's program and returns what it printed. An error carries its standard error.
func ask(ctx context.Context, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var out, words bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &words
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err == nil {
		return strings.TrimSpace(out.String()), nil
	}
	if said := strings.Join(strings.Fields(words.String()), " "); said != "" && !errors.Is(err, context.DeadlineExceeded) {
		err = &saidError{said, err}
	}
	return strings.TrimSpace(out.String()), fmt.Errorf("%s: %w", argv[0], err)
}

// saidError is a program's failure, in its own words.
type saidError struct {
	said string
	err  error
}

func (e *saidError) Error() string { return e.said }
func (e *saidError) Unwrap() error { return e.err }

// installer is the part of kardianos/service that we use.
type installer interface {
	Install() error   // write the file that the manager reads, and with systemd enable it
	Uninstall() error // the opposite
	Start() error
	Stop() error
	Restart() error
}

// library is kardianos/service for one kind of manager. The kind is named explicitly: where systemd does not run, the
// library would choose System V scripts.
func library(kind string, c *kardianos.Config) (installer, error) {
	for _, system := range kardianos.AvailableSystems() {
		if system.String() == kind {
			return system.New(hosted{}, c) // it only installs
		}
	}
	return nil, errors.New("this system has no " + kind)
}

// TailCommand returns the command that shows the last n lines of files, and new ones if follow is set.
func TailCommand(n int, follow bool, files ...string) []string {
	if runtime.GOOS == "windows" {
		return getContent(n, follow, files...)
	}
	return tail(n, follow, files...)
}

func tail(n int, follow bool, files ...string) []string {
	argv := []string{"tail", "-n", strconv.Itoa(n)}
	if follow {
		argv = append(argv, "-F") // a file is replaced when it has grown large
	}
	return append(argv, files...)
}

// getContent is one script, with the files in it: PowerShell would take what follows it for more of it, and split it at
// spaces. A file that is followed never ends, so several are each followed by a job.
func getContent(n int, follow bool, files ...string) []string {
	var quoted []string
	for _, f := range files {
		quoted = append(quoted, "'"+strings.ReplaceAll(f, "'", "''")+"'")
	}
	list, end := strings.Join(quoted, ","), " -Tail "+strconv.Itoa(n)
	if follow {
		end += " -Wait"
	}
	script := "Get-Content -LiteralPath " + list + end
	if follow && len(files) > 1 {
		script = list + " | ForEach-Object { Start-Job { Get-Content -LiteralPath $args[0]" + end +
			" } -ArgumentList $_ } | Receive-Job -Wait"
	}
	return []string{"powershell", "-NoProfile", "-Command", script}
}
