package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ccship/ccship/e2e/kit"
)

// seat is a terminal at which a person types `ccship`.
type seat struct {
	t         *testing.T
	seen, tty *os.File
	shown     kit.Journal
	columns   uint16
	before    *unix.Termios
	ended     <-chan struct{}
}

// sit opens a terminal of 80 by 24 in the working directory and starts ccship on it.
func sit(t *testing.T, w *world, args ...string) *seat {
	t.Helper()
	s := &seat{t: t, columns: 80}
	var err error
	if s.seen, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Skip("no terminals here: ", err)
	}
	t.Cleanup(func() { _ = s.seen.Close() })
	must(t, unix.IoctlSetPointerInt(int(s.seen.Fd()), unix.TIOCSPTLCK, 0))
	n := kit.Try(unix.IoctlGetUint32(int(s.seen.Fd()), unix.TIOCGPTN)).Must(t)
	s.tty = kit.Try(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)).Must(t)
	t.Cleanup(func() { _ = s.tty.Close() })
	s.resize()
	s.before = kit.Try(unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)).Must(t)
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := s.seen.Read(buf)
			_, _ = s.shown.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	cmd := w.command(context.Background(), kit.Program(t, "ccship"), args...)
	cmd.Dir = w.cwd()
	cmd.Env = append(cmd.Env, "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.tty, s.tty, s.tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, cmd.Start())
	done := make(chan struct{})
	s.ended = done
	go func() { _ = cmd.Wait(); close(done) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-done })
	return s
}

// resize changes the width by one column, after which everything is drawn anew.
func (s *seat) resize() {
	s.columns = 161 - s.columns
	must(s.t, unix.IoctlSetWinsize(int(s.tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: s.columns, Row: 24}))
}

// sees waits until words are on the screen.
func (s *seat) sees(words string) {
	s.t.Helper()
	kit.Require(s.t, s.shows(words, 12*time.Minute), "never seen: %q in %q", words, kit.Tail(s.shown.String(), 4000))
}

// finds types until words are shown. A slow server is not asked again for what is typed, so it is typed anew.
func (s *seat) finds(query, words string) {
	s.t.Helper()
	for range 24 {
		s.types("x\x15" + query) // Ctrl-U
		if s.shows(words, 30*time.Second) {
			return
		}
	}
	s.t.Fatalf("never found: %q in %q", words, kit.Tail(s.shown.String(), 4000))
}

// shows waits for words on the screen. The program draws only what changes, so it is made to draw everything.
func (s *seat) shows(words string, atMost time.Duration) bool {
	s.t.Helper()
	limit := time.After(atMost)
	for {
		from := len(s.shown.String())
		s.resize()
		for range 20 {
			if strings.Contains(s.shown.String()[from:], words) {
				return true
			}
			select {
			case <-s.ended:
				s.t.Fatalf("ccship ended before %q was seen: %q", words, kit.Tail(s.shown.String(), 4000))
			case <-limit:
				return false
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

// writes waits until the terminal has got some bytes.
func (s *seat) writes(bytes string) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("%q is written", bytes), time.Minute, func() bool {
		return strings.Contains(s.shown.String(), bytes)
	})
}

func (s *seat) types(keys string) {
	s.t.Helper()
	kit.Try(s.seen.WriteString(keys)).Must(s.t)
}

// left waits until the program has ended, and demands that the terminal is as it was.
func (s *seat) left() {
	s.t.Helper()
	<-s.ended
	after := kit.Try(unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)).Must(s.t)
	kit.Check(s.t, *after == *s.before, "the terminal is %+v and was %+v", after, s.before)
	s.writes("\x1b[?1049l")
	text := s.shown.String()
	kit.Check(s.t, strings.Contains(text, "\x1b[?1049h") && !strings.Contains(text, "\x1b[31m"), "shown was %q", kit.Tail(text, 4000))
}

// TestScreen: a person at a terminal finds a session of another machine while typing, and Enter becomes Claude Code
// with it, in the folder of this machine. Later the server is gone: the screen has what is on disk, and Esc leaves no
// trace.
func TestScreen(t *testing.T) {
	there := aloneWorld(t)
	there.start()
	c := newConversation(611, there.cwd())
	prompt := strings.Replace(string(c.even(1, 300)), `"content":"`, `"content":"the xylophone is out of tune `, 1)
	there.add(there.path("-work-shop", c.session+".jsonl"), append([]byte(prompt), c.even(10, 300)...))
	there.sync()
	must(t, os.RemoveAll(there.cwd())) // this machine has no such folder

	here := &world{home: newHome(t), exact: there.exact}
	here.url = there.url
	here.writeKey(there.exact.key)
	bin, said := filepath.Join(here.dir, "bin"), filepath.Join(here.dir, "said")
	must(t, os.MkdirAll(bin, 0o700))
	stub := "#!/bin/sh\nprintf '%s\\n' \"$PWD\" \"$@\" >" + said + ".new && mv " + said + ".new " + said + "\n"
	must(t, os.WriteFile(filepath.Join(bin, "claude"), []byte(stub), 0o700))
	here.env = append(here.env, "PATH="+bin+":"+os.Getenv("PATH"))
	here.start()
	eventually(t, "the server has read the session", time.Minute, func() bool {
		return strings.Contains(here.ccship("search", "xylophone").stdout, "xylophone")
	})

	s := sit(t, here)
	s.finds("", "1 session")
	s.finds("xylophone tune", "prompt: the xylophone")
	s.types("\x19") // Ctrl-Y
	s.writes("\x1b]52;c;")
	s.types("\x05") // Ctrl-E
	s.sees("wrote ")
	files, err := filepath.Glob(filepath.Join(here.cwd(), "*.md"))
	kit.Check(t, err == nil && len(files) == 1 && strings.Contains(string(here.read(files[0])), "xylophone"),
		"exported were %v, %v", files, err)
	s.types("\r")
	s.left()
	folder := kit.Try(filepath.EvalSymlinks(here.cwd())).Must(t)
	kit.Equal(t, "claude was started with", string(here.read(said)), folder+"\n--resume\n"+c.session+"\n")
	files, err = filepath.Glob(filepath.Join(here.projects(), "*", c.session+".jsonl"))
	kit.Check(t, err == nil && len(files) == 1, "the session's files are %v, %v", files, err)

	there.exact.proc.MustStop(t)
	s = sit(t, here)
	s.sees("on this disk only")
	s.finds("xylophone", "prompt: the xylophone")
	s.types("\x1b")
	s.left()
}
