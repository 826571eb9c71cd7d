package main

import (
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// On a terminal SIGHUP asks for the configuration to be read again, until the terminal is gone: then it ends the daemon.
func TestRunOnTerminal(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("SIGHUP is ignored here, as below nohup: what is started inherits that, and is to live on")
	}
	seen, tty := openTerminal(t, 80, 24)
	dir := t.TempDir()
	socket, config, log := kit.Socket(t), filepath.Join(dir, "config.toml"), filepath.Join(dir, "log")
	write := func(text string) {
		t.Helper()
		kit.Must(t, os.WriteFile(config, []byte(text), 0o600))
	}
	write("")
	cmd := process(t, "run", "--socket", socket, "--state-dir", filepath.Join(dir, "state"), "--config", config, "--log-file", log)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	kit.Must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	client := control.Dial(socket)
	kit.Eventually(t, "it answers", hung/12, func() bool {
		_, err := client.Status(t.Context())
		return err == nil
	})
	// A mistake is logged each time it is read: the log counts how often the configuration is.
	write("no_such_key = 1\n")
	reads := func() int {
		text := kit.Try(os.ReadFile(log)).Must(t)
		return strings.Count(string(text), "no_such_key")
	}
	kit.Eventually(t, "it reads a changed configuration", hung/12, func() bool { return reads() > 0 })
	before := reads()
	kit.Must(t, cmd.Process.Signal(syscall.SIGHUP))
	kit.Eventually(t, "SIGHUP has it read its configuration again", hung/12, func() bool { return reads() > before })
	kit.Must(t, tty.Close())
	kit.Must(t, seen.Close()) // hangs up
	select {
	case err := <-ended:
		kit.Check(t, err == nil, "ended with %v", err)
	case <-time.After(hung):
		t.Error("it lives on without its terminal")
	}
}
