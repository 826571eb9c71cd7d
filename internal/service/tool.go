package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	kardianos "github.com/kardianos/service"
)

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
