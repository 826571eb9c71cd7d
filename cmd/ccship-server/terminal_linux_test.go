package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ccship/ccship/e2e/kit"
)

// onTerminal is what a command writes to a terminal, on both outputs.
func onTerminal(t *testing.T, args ...string) string {
	t.Helper()
	seen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	defer seen.Close()
	kit.Must(t, unix.IoctlSetPointerInt(int(seen.Fd()), unix.TIOCSPTLCK, 0))
	n := kit.Try(unix.IoctlGetUint32(int(seen.Fd()), unix.TIOCGPTN)).Must(t)
	tty := kit.Try(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)).Must(t)
	all := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(seen) // ends with an error when the other side is closed
		all <- string(text)
	}()
	run(t.Context(), args, tty, tty)
	_ = tty.Close()
	return <-all
}

// TestTerminal: every command that ends by itself writes nothing but text, on a terminal too, with NO_COLOR and without.
func TestTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("HOME", t.TempDir())
	store := "sqlite:" + filepath.Join(t.TempDir(), "server.db")
	onTerminal(t, "user", "add", "kim", "--store", store)
	for _, set := range []string{"", "1"} {
		t.Setenv("NO_COLOR", set)
		commands := [][]string{{"--help"}, {"no-such-command"}}
		var walk func(c *cobra.Command)
		walk = func(c *cobra.Command) {
			for _, sub := range c.Commands() {
				words := strings.Fields(sub.CommandPath())[1:]
				commands = append(commands, append(slices.Clone(words), "--help"))
				stays := slices.Contains([]string{"serve", "install", "start", "stop", "uninstall", "status"}, words[0])
				if !sub.HasSubCommands() && !stays {
					if sub.Flags().Lookup("store") != nil {
						words = append(words, "--store", store)
					}
					commands = append(commands, words)
				}
				walk(sub)
			}
		}
		walk(newRoot())
		kit.Check(t, len(commands) >= 40, "only %d commands", len(commands))
		for _, args := range commands {
			text := onTerminal(t, args...)
			kit.Check(t, !strings.ContainsAny(strings.ReplaceAll(text, "\r\n", "\n"), "\x1b\r\a\b") && text != "",
				"NO_COLOR=%s %v writes %q", set, args, text)
		}
	}
}
