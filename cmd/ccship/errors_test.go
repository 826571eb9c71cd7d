package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/daemon"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// Every line about something that went wrong is followed by what to do about it.
func TestErrorHints(t *testing.T) {
	errs := []error{
		errors.New("it broke"),
		fmt.Errorf("open state: %w", &fs.PathError{Op: "open", Path: "/s/state.db", Err: fs.ErrPermission}),
		fmt.Errorf("write state: %w", syscall.ENOSPC),
		fmt.Errorf("open log: %w", &fs.PathError{Op: "open", Path: "/s/log", Err: syscall.EROFS}),
		fmt.Errorf("open state: %w", &fs.PathError{Op: "open", Path: "/s/state.db", Err: fs.ErrNotExist}),
		fmt.Errorf("ask daemon: %w", context.Canceled),
		daemon.ErrAlreadyRunning,
		&config.Error{Message: "a mistake"},
		&config.Error{Message: "a mistake", Hint: "its own hint"},
		&control.Error{Code: control.CodeUnreachable, Message: "of a known kind", Hint: "its own hint"},
	}
	for _, code := range []string{
		control.CodeNotRunning, control.CodeNoAnswer, control.CodeUnreachable, control.CodeRefusedKey, control.CodeUsage,
		control.CodeConfig, control.CodeInUse, control.CodeSocket, control.CodeFailed, "forbidden", "",
	} {
		errs = append(errs, &control.Error{Code: code, Message: "code " + code})
	}
	for _, reason := range []string{"timeout", "unreachable", "refused_key", "refused", "no_server", "full", ""} {
		errs = append(errs, show.Unfinished(control.SyncResult{Reason: reason, Detail: "a detail"}))
	}
	var b bytes.Buffer
	for _, err := range errs {
		e := show.Describe(err)
		kit.Check(t, e.Hint != "", "%v: no hint", err)
		show.PrintError(&b, e)
		fmt.Fprintf(&b, "exit code %d\n\n", show.ExitCode(e))
	}
	text := b.String()
	for _, word := range []string{syscall.ENOSPC.Error(), syscall.EROFS.Error()} {
		text = strings.ReplaceAll(text, word, "SYSTEM") // each system has words of its own
	}
	showtest.Golden(t, "errors.txt", text)
}
