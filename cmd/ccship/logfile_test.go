package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

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
