package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/e2e/kit"
)

// sgr is what changes colours; everything else that a terminal gets moves its cursor.
var sgr = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// notOnTerminal are commands that TestNoColour does not run: programs that stay, and those that need a service manager.
var notOnTerminal = []string{"run", "up", "hook", "mcp", "guard", "install", "uninstall", "start", "stop", "restart",
	"__complete", "__completeNoDesc"}

// everyCommand runs every command and gives what each writes to what opened returns, by command.
func everyCommand(t *testing.T, opened func() (w *os.File, written func() string)) map[string]string {
	t.Helper()
	flags, file := thiefHome(t, readingServer(t))
	t.Setenv("CCSHIP_API_KEY_FILE", "") // without a key nobody has to prove anything
	kit.Must(t, os.Remove(filepath.Join(filepath.Dir(filepath.Dir(file)), "state", "proven_servers")))
	flags = append(flags, "--socket", listen(t, newActor()))
	args := thiefArgs(file)
	for _, command := range []string{"show", "export", "show --timeline", "checkpoint create"} {
		args[command] = []string{storedSession}
	}
	out := map[string]string{}
	execute := func(words []string) {
		w, written := opened()
		a := &app{App: show.App{Stdout: w, Stderr: w, Version: "1.2.3"}}
		a.execute(t.Context(), words)
		out[strings.Join(words, " ")] = written()
	}
	execute([]string{"--help"})
	execute([]string{"no-such-command"})
	leaves((&app{App: show.App{Stdout: io.Discard, Stderr: io.Discard}}).root(), func(words []string) {
		if slices.Contains(notOnTerminal, words[0]) {
			return
		}
		command := strings.Join(words, " ")
		w, written := opened()
		a := &app{App: show.App{Stdout: w, Stderr: w, Version: "1.2.3"}}
		a.execute(t.Context(), slices.Concat(words, args[command], flags))
		out[command] = written()
		execute(append(words, "--help"))
	})
	return out
}

// TestNoColour runs every command on a terminal, with NO_COLOR and without, and into a file, which has only text.
func TestNoColour(t *testing.T) {
	jsonHome(t)
	t.Setenv("TERM", "xterm")
	onTerminal := func() (*os.File, func() string) {
		seen, tty := openTerminal(t, 100, 40)
		all := make(chan string, 1)
		go func() {
			text, _ := io.ReadAll(seen) // ends with an error when the other side is closed
			all <- string(text)
		}()
		return tty, func() string { _ = tty.Close(); return <-all }
	}
	t.Setenv("NO_COLOR", "")
	coloured := everyCommand(t, onTerminal)
	t.Setenv("NO_COLOR", "1")
	plain := everyCommand(t, onTerminal)
	t.Setenv("NO_COLOR", "")
	inFile := everyCommand(t, func() (*os.File, func() string) {
		f := kit.Try(os.Create(t.TempDir() + "/out")).Must(t)
		return f, func() string {
			defer f.Close()
			text, err := os.ReadFile(f.Name())
			kit.Check(t, err == nil, "%v", err)
			return string(text)
		}
	})
	for command, text := range plain {
		found := sgr.FindString(text)
		kit.Check(t, found == "", "%s writes %q in spite of NO_COLOR: %q", command, found, text)
	}
	for command, text := range inFile {
		kit.Check(t, !strings.ContainsAny(text, "\x1b\r\a\b"), "%s writes more than text into a file: %q", command, text)
	}
	for _, command := range []string{"status", "search", "doctor"} {
		kit.Check(t, sgr.MatchString(coloured[command]) && strings.TrimSpace(inFile[command]) != "",
			"%s has no colours on a terminal, or no text: the test shows nothing: %q", command, coloured[command])
	}
	t.Logf("%d commands", len(coloured))
}
