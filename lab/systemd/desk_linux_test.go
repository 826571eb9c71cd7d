package systemd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"golang.org/x/sys/unix"
)

// desk is where a person sits: a terminal into the box, which is recorded as asciicast has it.
type desk struct {
	*box
	events  [][]any // seconds, "o", text
	at      float64 // seconds from the beginning of the recording
	shownAt time.Time
	all     string // what was shown, without what moves the cursor
	since   string // that of the newest command
}

const (
	deskColumns, deskRows = 96, 22
	typing                = .045 // seconds that a person takes for a character, in the picture
	longest               = 1.2  // seconds that the picture waits at most
	reading               = 2.5  // seconds that the picture shows what a command said
)

// moves are sequences that move the cursor, clear and colour.
var moves = regexp.MustCompile(`\x1b(\[[0-9;?]*[ -/]*[@-~]|[78])|\r`)

// answer is what a person types when a question is shown.
type answer struct{ question, typed string }

// note keeps what the terminal shows now.
func (d *desk) note(text string) {
	now := time.Now()
	if !d.shownAt.IsZero() {
		d.at += min(now.Sub(d.shownAt).Seconds(), longest)
	}
	d.shownAt = now
	d.events = append(d.events, []any{d.at, "o", text})
	d.all += moves.ReplaceAllString(text, "")
}

// picture draws the recording as an animated SVG, by npm's svg-term. Who wants no motion sees how it ends.
func (d *desk) picture(file string) {
	d.t.Helper()
	d.at += reading
	d.note("")
	var cast bytes.Buffer
	lines := json.NewEncoder(&cast)
	must(d.t, lines.Encode(map[string]int{"version": 2, "width": deskColumns, "height": deskRows}))
	for _, e := range d.events {
		must(d.t, lines.Encode(e))
	}
	must(d.t, os.WriteFile(file+".cast", cast.Bytes(), 0o600))
	out, err := command("npx", "--yes", "svg-term-cli@2.1.1", "--in", file+".cast", "--out", file).CombinedOutput()
	kit.Require(d.t, err == nil, "svg-term: %v\n%s", err, out)
	drawn := kit.Try(os.ReadFile(file)).Must(d.t)
	still := fmt.Sprintf("<style>@media (prefers-reduced-motion:reduce){*{animation-play-state:paused!important;animation-delay:-%.1fs!important}}", d.at-reading/2)
	must(d.t, os.WriteFile(file, bytes.Replace(drawn, []byte("<style>"), []byte(still), 1), 0o600))
}

// run runs a command behind a prompt, "#" root's or "$" the user's, and answers its questions in their order. The
// command has to succeed.
func (d *desk) run(prompt, command string, answers ...answer) {
	d.t.Helper()
	if len(d.events) > 0 {
		d.at += reading
		d.note("\x1b[2J\x1b[H")
	}
	d.note(prompt + " ")
	for _, r := range command {
		d.at += typing
		d.note(string(r))
	}
	d.note("\r\n")
	before := len(d.all)
	seen, tty := d.terminal()
	defer seen.Close()
	args := asUser("TERM=xterm", "sh", "-c", command)
	if prompt == "#" {
		args = append(clean(home, "root"), "TERM=xterm", "sh", "-c", command)
	}
	cmd := exec.Command("nsenter", append([]string{"--target", strconv.Itoa(d.leader), "--all", "--"}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(d.t, cmd.Start())
	must(d.t, tty.Close())
	d.read(seen, before, answers)
	err := cmd.Wait()
	if d.since = d.all[before:]; err != nil {
		d.t.Fatalf("%s: %v\n%s", command, err, d.since)
	}
}

// read notes what is shown until the command ends, and types the answers when their questions are there.
func (d *desk) read(seen *os.File, before int, answers []answer) {
	d.t.Helper()
	buf := make([]byte, 64<<10)
	for {
		n, err := seen.Read(buf)
		if n > 0 {
			d.note(string(buf[:n]))
		}
		if len(answers) > 0 && strings.Contains(d.all[before:], answers[0].question) {
			before += strings.Index(d.all[before:], answers[0].question) + len(answers[0].question)
			kit.Try(seen.WriteString(answers[0].typed)).Must(d.t)
			answers = answers[1:]
		}
		if err != nil { // the last one who had the terminal open has ended
			break
		}
	}
	if len(answers) > 0 {
		d.t.Fatalf("it never asks %q:\n%s", answers[0].question, d.all[before:])
	}
}

// terminal is a new one: the side that a person sees, and the one for programs.
func (d *desk) terminal() (seen, tty *os.File) {
	d.t.Helper()
	seen = kit.Try(os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)).Must(d.t)
	must(d.t, unix.IoctlSetPointerInt(int(seen.Fd()), unix.TIOCSPTLCK, 0))
	n := kit.Try(unix.IoctlGetUint32(int(seen.Fd()), unix.TIOCGPTN)).Must(d.t)
	tty = kit.Try(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)).Must(d.t)
	must(d.t, unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: deskColumns, Row: 40}))
	return seen, tty
}
