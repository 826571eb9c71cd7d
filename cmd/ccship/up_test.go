package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/cmd/ccship/setup"
	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/e2e/kit"
)

// upRun is one `ccship up` under test.
type upRun struct {
	t      *testing.T
	cmd    *exec.Cmd
	lines  chan string // of stdout; closed at its end
	stderr *bytes.Buffer
}

// newUpHome is an environment for ccship in a home of its own.
func newUpHome(t *testing.T) (env []string, home string) {
	t.Helper()
	home = kit.Try(os.MkdirTemp("", "ccup")).Must(t) // the socket's path has to stay short
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "CCSHIP_") && !strings.HasPrefix(v, "XDG_") && !strings.HasPrefix(v, "CLAUDE_") {
			env = append(env, v)
		}
	}
	return append(env, "HOME="+home, "USERPROFILE="+home), home
}

// ccship runs a command to its end.
func ccship(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, words bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "ccship", args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &words
	err := cmd.Run()
	kit.Require(t, err == nil || cmd.ProcessState != nil, "%v", err)
	return cmd.ProcessState.ExitCode(), out.String(), words.String()
}

func startUp(t *testing.T, env []string, args ...string) *upRun {
	t.Helper()
	u := &upRun{t: t, lines: make(chan string, 100), stderr: &bytes.Buffer{}}
	u.cmd = exec.Command("ccship", append([]string{"up"}, args...)...)
	u.cmd.Env, u.cmd.Stderr = env, u.stderr
	out, err := u.cmd.StdoutPipe()
	if err == nil {
		err = u.cmd.Start()
	}
	kit.Must(t, err)
	go func() {
		for scan := bufio.NewScanner(out); scan.Scan(); {
			u.lines <- scan.Text()
		}
		close(u.lines)
	}()
	t.Cleanup(func() {
		if u.cmd.ProcessState == nil {
			_ = u.cmd.Process.Kill()
			u.end()
		}
	})
	return u
}

// read waits for a line that begins with prefix.
func (u *upRun) read(prefix string) string {
	u.t.Helper()
	deadline := time.After(hung)
	for {
		select {
		case line, ok := <-u.lines:
			if !ok {
				u.t.Fatalf("ended without %q: code %d, %s", prefix, u.end(), u.stderr)
			}
			if strings.HasPrefix(line, prefix) {
				return line
			}
		case <-deadline:
			u.t.Fatalf("no %q in time", prefix)
		}
	}
}

// end waits for the exit code.
func (u *upRun) end() int {
	for range u.lines { // Wait may only be called when stdout has been read
	}
	_ = u.cmd.Wait()
	return u.cmd.ProcessState.ExitCode()
}

// listening says whether someone answers at the end of a line that ends in a URL.
func listening(line string) bool {
	conn, err := net.Dial("tcp", addressIn(line))
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// get is what a URL answers; "" when nobody does.
func get(url string) string {
	answer, err := http.Get(url)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return ""
	}
	return string(text)
}

func addressIn(line string) string {
	_, address, _ := strings.Cut(line, "http://")
	return strings.TrimSuffix(address, "/")
}

// A kill of the parent with -9 leaves no server behind.
func TestUpKilled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("untested on Windows")
	}
	env, _ := newUpHome(t)
	u := startUp(t, env, "--listen", kit.Address(t))
	line := u.read("no conversations yet")
	u.read("watching")
	kit.Must(t, u.cmd.Process.Kill())
	u.end()
	kit.Eventually(t, "the server ends with its parent", hung/12, func() bool { return !listening(line) })
	again := startUp(t, env)
	again.read("watching")
}

// A server that ends by itself ends the run, with what it said.
func TestUpServerDies(t *testing.T) {
	env, _ := newUpHome(t)
	u := startUp(t, env, "--listen", kit.Address(t))
	url := "http://" + addressIn(u.read("no conversations yet"))
	u.read("watching")
	first := get(url + "/healthz")
	kit.Require(t, first != "" && get(url+"/die") == "", "server %q did not die", first)
	if code := u.end(); code != 1 || !strings.Contains(u.stderr.String(), "ccship: ccship-server has ended: exit status 7") {
		t.Errorf("without its server: %d %s", code, u.stderr)
	}
	broken, _ := newUpHome(t)
	code, _, words := ccship(t, append(broken, "FAKE_SERVER=broken"), "up", "--listen", kit.Address(t))
	kit.Check(t, code == 1 && strings.Contains(words, "ccship: ccship-server has ended: exit status 1: ccship-server: the database is broken\nhint: its log is "),
		"broken server: %d %s", code, words)
}

func TestUpAddress(t *testing.T) {
	env, home := newUpHome(t)
	for _, address := range []string{"0.0.0.0:5000", "example.org:80", "127.0.0.1", "127.0.0.1:0", ":5000"} {
		code, _, words := ccship(t, env, "up", "--listen", address)
		kit.Check(t, code == show.ExitUsage && strings.Contains(words, "hint: "), "--listen %s: %d %s", address, code, words)
	}
	_, err := os.Stat(filepath.Join(home, ".local", "state", "ccship", "up", "listen"))
	kit.Check(t, err != nil, "an address that cannot be used is remembered")
	h := setup.Home{Dir: t.TempDir()}
	first := kit.Try(h.Address(t.Context(), "")).Must(t)
	kit.Gives(t, "address then", first)(h.Address(t.Context(), ""))
}

// A new database gets every line: state that says they were sent belongs to the one that is gone.
func TestUpNewDatabase(t *testing.T) {
	h := setup.Home{Dir: t.TempDir()}
	program := kit.Try(exec.LookPath("ccship-server")).Must(t)
	if fresh, err := h.EnsureKey(t.Context(), program); !fresh || err != nil {
		t.Fatalf("first: %v %v", fresh, err)
	}
	kit.Must(t, os.Mkdir(h.File("state"), 0o700))
	if fresh, err := h.EnsureKey(t.Context(), program); fresh || err != nil {
		t.Errorf("second: %v %v", fresh, err)
	}
	kit.Must(t, os.Remove(h.File("server.db")))
	if fresh, err := h.EnsureKey(t.Context(), program); !fresh || err != nil {
		t.Errorf("without a database: %v %v", fresh, err)
	}
	aside, err := filepath.Glob(h.File("state.before-*"))
	_, missing := os.Stat(h.File("state"))
	kit.Check(t, err == nil && len(aside) == 1 && missing != nil, "old state: %v %v, %v", aside, err, missing)
}

// The guard ends its program when its standard input does.
func TestGuard(t *testing.T) {
	env, _ := newUpHome(t)
	address := kit.Address(t)
	program := kit.Try(exec.LookPath("ccship-server")).Must(t)
	guard := exec.Command("ccship", "guard", program, "serve", "--listen", address)
	guard.Env = env
	parent, err := guard.StdinPipe()
	if err == nil {
		err = guard.Start()
	}
	kit.Must(t, err)
	kit.Eventually(t, "the program runs", hung/12, func() bool { return listening("http://" + address) })
	parent.Close()
	kit.Err(t, "guard", nil)(guard.Wait())
	kit.Check(t, !listening("http://"+address), "the program outlives its guard")
}

func TestLogFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "ccship.log")
	line := strings.Repeat("x", 99) + "\n"
	for range 3 { // goes on where it stopped
		log := kit.Try(openLogFile(path, 1000)).Must(t)
		for range 5 {
			n, err := io.WriteString(log, line)
			kit.Require(t, n == len(line) && err == nil, "%d %v", n, err)
		}
		kit.Must(t, log.Close())
	}
	for name, want := range map[string]int{path: 5, path + ".1": 10} {
		text, err := os.ReadFile(name)
		kit.Check(t, err == nil && len(text) == want*len(line) && bytes.HasSuffix(text, []byte(line)),
			"%s: %d bytes %v", name, len(text), err)
	}
	for name, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode && runtime.GOOS != "windows" {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	log := kit.Try(openLogFile(path, 1000)).Must(t)
	defer log.Close()
	if _, err := io.WriteString(log, strings.Repeat("y", 5000)+"\n"); err != nil { // longer than a whole log
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil && runtime.GOOS != "windows" { // as people do
		t.Fatal(err)
	}
	_, err := io.WriteString(log, line)
	kit.Check(t, err == nil, "%v", err)
	_, err = openLogFile(filepath.Join(path+".1", "x"), 1)
	kit.Check(t, err != nil, "a log below a file")
}

// What a program says when it crashes is in the log, the newest one.
func TestLogFileCrash(t *testing.T) {
	path := os.Getenv("CRASH_LOG")
	if path != "" {
		log, err := openLogFile(path, 10)
		if err == nil {
			_, err = io.WriteString(log, "0123456789")
		}
		if err == nil {
			_, err = io.WriteString(log, "next\n") // in a file of its own
		}
		kit.Must(t, err)
		panic("on purpose")
	}
	path = filepath.Join(t.TempDir(), "l")
	self := kit.Try(os.Executable()).Must(t)
	cmd := exec.Command(self, "-test.run=^TestLogFileCrash$")
	temp := t.TempDir() // the child's commands lie there, and it removes nothing
	cmd.Env = append(os.Environ(), "CRASH_LOG="+path, "TMPDIR="+temp, "TMP="+temp)
	kit.Require(t, cmd.Run() != nil, "it did not crash")
	text, err := os.ReadFile(path)
	kit.Check(t, err == nil && strings.HasPrefix(string(text), "next\n") && strings.Contains(string(text), "on purpose"),
		"%v %q", err, text)
}

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
