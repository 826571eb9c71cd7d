package e2e

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ccship/ccship/e2e/kit"
)

// TestCaptureTerminal: the command has the terminal; Ctrl-C reaches it once, and capture lives on.
func TestCaptureTerminal(t *testing.T) {
	w := aloneWorld(t)
	s := newScribe(w, 70, 5)
	at := sit(t, w, s.capture(`trap 'n=$((n + 1)); echo caught $n' INT; test -t 0 && test -t 1 && test -t 2 && echo on a terminal
		while ! read line; do :; done; cat "$1" >>"$2"; echo "read $line"`)...)
	at.writes("on a terminal")
	at.types("\x03")
	at.writes("caught 1")
	at.types("hello\r")
	at.writes("read hello")
	<-at.ended
	kit.Check(t, !strings.Contains(at.shown.String(), "caught 2"), "Ctrl-C came twice: %q", at.shown.String())
	after, err := unix.IoctlGetTermios(int(at.tty.Fd()), unix.TCGETS)
	kit.Check(t, err == nil && *after == *at.before, "the terminal is %+v and was %+v: %v", after, at.before, err)
	s.same(s.session, s.path)
	if t.Failed() {
		t.Logf("the terminal shows %q", at.shown.String())
	}
}
