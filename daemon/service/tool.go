package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	kardianos "github.com/kardianos/service"
)

// answerTime is how long a manager may take to answer a question.
const answerTime = 10 * time.Second

// ask runs a manager's program and answers what it printed. An error carries what it said on standard error.
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

// saidError is a program's failure in its own words.
type saidError struct {
	said string
	err  error
}

func (e *saidError) Error() string { return e.said }
func (e *saidError) Unwrap() error { return e.err }

// installer is what is used of kardianos/service.
type installer interface {
	Install() error   // write the file that the manager reads, and with systemd enable it
	Uninstall() error // the opposite
	Start() error
	Stop() error
	Restart() error
}

// program has the shape of a program that kardianos/service runs; it only ever installs one.
type program struct{}

func (program) Start(kardianos.Service) error { return nil }
func (program) Stop(kardianos.Service) error  { return nil }

// library is kardianos/service for one kind of manager. It is asked for by name: its own choice would be System V's
// scripts where systemd does not run.
func library(kind string, c *kardianos.Config) (installer, error) {
	for _, system := range kardianos.AvailableSystems() {
		if system.String() == kind {
			return system.New(program{}, c)
		}
	}
	return nil, &noManager
}
