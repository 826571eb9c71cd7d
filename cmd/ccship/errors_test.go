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

	"github.com/ccship/ccship/daemon"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
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
		errs = append(errs, unfinished(control.SyncResult{Reason: reason, Detail: "a detail"}))
	}
	var b bytes.Buffer
	for _, err := range errs {
		e := describe(err)
		if e.Hint == "" {
			t.Errorf("%v: no hint", err)
		}
		printError(&b, e)
		fmt.Fprintf(&b, "exit code %d\n\n", exitCode(e))
	}
	text := b.String()
	for _, word := range []string{syscall.ENOSPC.Error(), syscall.EROFS.Error()} {
		text = strings.ReplaceAll(text, word, "SYSTEM") // each system has words of its own
	}
	golden(t, "errors.txt", text)
}

// A server in trouble shows what to do, whether the daemon said so or not.
func TestServerHints(t *testing.T) {
	var b strings.Builder
	show := func(s control.Server) {
		s.URL = "http://h"
		b.WriteString(strings.Join(statusView{now: moment()}.server(s), "\n") + "\n\n")
	}
	for _, kind := range []string{"unreachable", "server_error", "busy", "refused_key", "refused", "not_found", "redirect", "protocol", "something new", ""} {
		state := "retrying"
		if strings.HasPrefix(kind, "re") || kind == "not_found" {
			state = "refused"
		}
		show(control.Server{State: state, Kind: kind, Detail: "kind " + kind})
	}
	show(control.Server{State: "retrying", Kind: "unreachable", Hint: "its own hint"})
	show(control.Server{State: "ok", Kind: "unreachable", Hint: "not shown"})
	show(control.Server{State: "unknown"})
	golden(t, "server_trouble.txt", b.String())
}

// What a person reads of a verify: what was not compared is counted, what is held back is named.
func TestReportText(t *testing.T) {
	held := equalReport()
	held.ExcludedFiles = 1
	held.Transcripts = append(held.Transcripts, fullReport().Transcripts[3])
	for name, r := range map[string]control.VerifyReport{"unequal": fullReport(), "equal": equalReport(), "held": held} {
		golden(t, "verify_"+name+".txt", reportText(r))
	}
}
