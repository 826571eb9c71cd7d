package main

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestPressedTwice: Ctrl-C within a second of a command's end is meant for it; any later signal ends the wait.
func TestPressedTwice(t *testing.T) {
	for _, c := range []struct {
		name  string
		since time.Duration
		sent  os.Signal
		ends  int
	}{
		{"at once", 0, os.Interrupt, 0},
		{"within the second", time.Second, os.Interrupt, 0},
		{"after it", time.Second + 1, os.Interrupt, 1},
		{"sent by a program", 0, os.Kill, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals, ends := make(chan os.Signal), 0
				typed := func(s os.Signal) bool { return s == os.Interrupt }
				go afterEnd(time.Now(), signals, typed, func() { ends++ })
				<-time.After(c.since)
				signals <- c.sent
				close(signals)
				synctest.Wait()
				kit.Check(t, ends == c.ends, "%d waits are ended, want %d", ends, c.ends)
			})
		})
	}
}
