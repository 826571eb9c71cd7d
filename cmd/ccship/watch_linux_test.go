package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// changing is a Daemon whose status a test changes.
type changing struct {
	control.Daemon
	mu     sync.Mutex
	status control.Status
}

func (c *changing) Status(context.Context) control.Status {
	return kit.Under(&c.mu, func() control.Status { return c.status })
}

func (c *changing) Probe(context.Context, bool) {}

func (c *changing) set(s control.Status) { kit.Locked(&c.mu, func() { c.status = s }) }

// process is the command line as a process of its own.
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self := kit.Try(os.Executable()).Must(t)
	dir := t.TempDir()
	kit.Must(t, os.Symlink(self, dir+"/ccship"))
	cmd := exec.CommandContext(t.Context(), dir+"/ccship", args...)
	cmd.Env = []string{"HOME=" + dir, "TERM=xterm", "LC_ALL=C.UTF-8"}
	return cmd
}

// Without a terminal there is a line for each change, and Ctrl-C ends it well.
func TestWatchLines(t *testing.T) {
	d := &changing{status: showtest.Healthy()}
	cmd := process(t, "status", "--watch", "--socket", listen(t, d))
	out := kit.Try(cmd.StdoutPipe()).Must(t)
	kit.Must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	want := []string{"watching, 132 transcripts, 0 waiting, 48 211 sent", "importing, 1 transcript, 30 MB of 61 MB read, 1 waiting, 48 211 sent"}
	for i, line := range want {
		kit.Require(t, lines.Scan() && strings.HasSuffix(lines.Text(), " "+line),
			"line %d is %q, want %q", i, lines.Text(), line)
		d.set(showtest.Statuses()["importing"])
	}
	kit.Must(t, cmd.Process.Signal(os.Interrupt))
	rest, err := io.ReadAll(out)
	kit.Check(t, err == nil && len(rest) == 0, "after the end: %q %v", rest, err)
	err = cmd.Wait()
	kit.Check(t, err == nil, "ended with %v", err)
}

// openTerminal makes a terminal of a size: the side that a person sees, and the one for programs.
func openTerminal(t *testing.T, columns, rows uint16) (seen, tty *os.File) {
	t.Helper()
	seen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	t.Cleanup(func() { _ = seen.Close() })
	kit.Must(t, unix.IoctlSetPointerInt(int(seen.Fd()), unix.TIOCSPTLCK, 0))
	n := kit.Try(unix.IoctlGetUint32(int(seen.Fd()), unix.TIOCGPTN)).Must(t)
	tty = kit.Try(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)).Must(t)
	t.Cleanup(func() { _ = tty.Close() })
	resize(t, tty, columns, rows)
	return seen, tty
}

func resize(t *testing.T, tty *os.File, columns, rows uint16) {
	t.Helper()
	kit.Must(t, unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}))
}

// reading reads what a terminal shows, and returns a wait until it has shown some words.
func reading(t *testing.T, seen *os.File) (shown func(words string)) {
	t.Helper()
	var mu sync.Mutex
	var text bytes.Buffer
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := seen.Read(buf)
			kit.Locked(&mu, func() { text.Write(buf[:n]) })
			if err != nil {
				return
			}
		}
	}()
	return func(words string) {
		t.Helper()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		limit := time.After(hung)
		for {
			mu.Lock()
			now := text.String()
			mu.Unlock()
			if strings.Contains(now, words) {
				return
			}
			select {
			case <-tick.C:
			case <-limit:
				t.Fatalf("never shown: %q in %q", words, now)
			}
		}
	}
}

// On a terminal the view is drawn in place, at every size, and Ctrl-C gives the cursor back.
func TestWatchTerminal(t *testing.T) {
	d := &changing{status: showtest.Statuses()["trouble"]}
	seen, tty := openTerminal(t, 30, 8)
	cmd := process(t, "status", "--watch", "--socket", listen(t, d))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	kit.Must(t, cmd.Start())
	shown := reading(t, seen)
	shown("\x1b[?25l")
	shown("more lines\r\n")
	shown("the server rejects …")
	resize(t, tty, 100, 40)
	d.set(showtest.Healthy())
	shown("\x1b[2J\x1b[H")
	shown("everything is on the server; watching for new lines")
	shown("A\r\x1b[J")                               // the next one, in place
	if _, err := seen.Write([]byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	err := cmd.Wait()
	kit.Check(t, err == nil, "ended with %v", err)
	shown("\x1b[?7h\x1b[?25h")
}
