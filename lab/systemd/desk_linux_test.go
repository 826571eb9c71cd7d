package systemd

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ccship/ccship/lab/cast"
)

// desk is where a person sits: a terminal into the box, which is recorded.
type desk struct {
	*box
	columns int
	since   string // what the newest command showed

	mu     sync.Mutex
	record cast.Recording
	began  time.Time
}

// deskRows is how many rows the picture has.
const deskRows = 22

// answer is what a person types when a question is shown.
type answer struct{ question, typed string }

// typing is how long a person takes for a character, in the picture.
const typing = 45 * time.Millisecond

// note keeps what the terminal shows now.
func (d *desk) note(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.began.IsZero() {
		d.began, d.record.Columns, d.record.Rows = time.Now(), d.columns, deskRows
	}
	d.record.Events = append(d.record.Events, cast.Event{At: time.Since(d.began), Text: text})
}

// text is everything that was shown.
func (d *desk) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.record.Text()
}

// run runs a command behind a prompt, "#" root's or "$" the user's, and answers its questions in their order. The
// command has to succeed.
func (d *desk) run(prompt, command string, answers ...answer) {
	d.t.Helper()
	if len(d.record.Events) > 0 {
		d.note("\x1b[2J\x1b[H")
	}
	d.note(prompt + " ")
	for _, r := range command {
		d.note(string(r))
		d.began = d.began.Add(-typing) // shown as if it had taken its time
	}
	d.note("\r\n")
	before := len(d.record.Events)
	seen, tty := d.terminal()
	defer seen.Close()
	cmd := exec.Command("nsenter", append([]string{"--target", strconv.Itoa(d.leader), "--all", "--"}, d.shell(prompt, command)...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(d.t, cmd.Start())
	must(d.t, tty.Close())
	d.read(seen, before, answers)
	err := cmd.Wait()
	d.mu.Lock()
	d.since = cast.Recording{Columns: d.columns, Events: d.record.Events[before:]}.Text()
	d.mu.Unlock()
	if err != nil {
		d.t.Fatalf("%s: %v\n%s", command, err, d.since)
	}
}

// read notes what is shown until the command ends, and types the answers when their questions are there.
func (d *desk) read(seen *os.File, before int, answers []answer) {
	d.t.Helper()
	shown := ""
	buf := make([]byte, 64<<10)
	for {
		n, err := seen.Read(buf)
		if n > 0 {
			d.note(string(buf[:n]))
			shown += string(buf[:n])
		}
		if len(answers) > 0 && strings.Contains(shown, answers[0].question) {
			_, shown, _ = strings.Cut(shown, answers[0].question)
			_, err := seen.WriteString(answers[0].typed)
			must(d.t, err)
			answers = answers[1:]
		}
		if err != nil { // the last one who had the terminal open has ended
			break
		}
	}
	if len(answers) > 0 {
		d.t.Fatalf("it never asks %q:\n%s", answers[0].question, cast.Recording{Columns: d.columns, Events: d.record.Events[before:]}.Text())
	}
}

// shell is a command line as root or the user types it.
func (d *desk) shell(prompt, command string) []string {
	if prompt == "#" {
		return terminalled(append(clean("/home/"+userName, "root"), "sh", "-c", command))
	}
	runtime := fmt.Sprintf("/run/user/%d", userID)
	args := append([]string{"/usr/sbin/runuser", "-u", userName, "--"}, clean("/home/"+userName, userName)...)
	args = append(args, "XDG_RUNTIME_DIR="+runtime, "DBUS_SESSION_BUS_ADDRESS=unix:path="+runtime+"/bus", "sh", "-c", command)
	return terminalled(args)
}

// terminalled is a command in an environment whose terminal can do what terminals can.
func terminalled(args []string) []string {
	for i := range args {
		if args[i] == "TERM=dumb" {
			args[i] = "TERM=xterm"
		}
	}
	return args
}

// terminal is a new one: the side that a person sees, and the one for programs.
func (d *desk) terminal() (seen, tty *os.File) {
	d.t.Helper()
	seen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	must(d.t, err)
	must(d.t, unix.IoctlSetPointerInt(int(seen.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetUint32(int(seen.Fd()), unix.TIOCGPTN)
	must(d.t, err)
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	must(d.t, err)
	must(d.t, unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(d.columns), Row: 40}))
	return seen, tty
}
