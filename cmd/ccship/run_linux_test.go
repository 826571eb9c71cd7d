package main

import (
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// On a terminal SIGHUP is a wish for the configuration, until the terminal is gone: then it is the end.
func TestRunOnTerminal(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("SIGHUP is ignored here, as below nohup: what is started inherits that, and is to live on")
	}
	seen, tty := openTerminal(t, 80, 24)
	socket := socketPath(t)
	cmd := process(t, "run", "--socket", socket, "--state-dir", filepath.Join(t.TempDir(), "state"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	client := control.Dial(socket)
	answers := func() bool {
		_, err := client.Status(t.Context())
		return err == nil
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for !answers() {
		select {
		case <-tick.C:
		case err := <-ended:
			t.Fatalf("ended with %v", err)
		case <-limit:
			t.Fatal("it does not answer")
		}
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Sync(t.Context(), control.SyncRequest{}); err != nil { // it goes on
		t.Errorf("after SIGHUP: %v", err)
	}
	if err := tty.Close(); err != nil {
		t.Fatal(err)
	}
	if err := seen.Close(); err != nil { // hangs up
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-limit:
		t.Error("it lives on without its terminal")
	}
}
