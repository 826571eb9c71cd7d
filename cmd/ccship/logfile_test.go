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
		log, err := openLogFile(path, 1000)
		kit.Must(t, err)
		for range 5 {
			if n, err := io.WriteString(log, line); n != len(line) || err != nil {
				t.Fatalf("%d %v", n, err)
			}
		}
		kit.Must(t, log.Close())
	}
	for name, want := range map[string]int{path: 5, path + ".1": 10} {
		text, err := os.ReadFile(name)
		if err != nil || len(text) != want*len(line) || !bytes.HasSuffix(text, []byte(line)) {
			t.Errorf("%s: %d bytes %v", name, len(text), err)
		}
	}
	for name, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode && runtime.GOOS != "windows" {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	log, err := openLogFile(path, 1000)
	kit.Must(t, err)
	defer log.Close()
	if _, err := io.WriteString(log, strings.Repeat("y", 5000)+"\n"); err != nil { // longer than a whole log
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil && runtime.GOOS != "windows" { // as people do
		t.Fatal(err)
	}
	if _, err := io.WriteString(log, line); err != nil {
		t.Error(err)
	}
	if _, err := openLogFile(filepath.Join(path+".1", "x"), 1); err == nil {
		t.Error("a log below a file")
	}
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
	self, err := os.Executable()
	kit.Must(t, err)
	cmd := exec.Command(self, "-test.run=^TestLogFileCrash$")
	temp := t.TempDir() // the child's commands lie there, and it removes nothing
	cmd.Env = append(os.Environ(), "CRASH_LOG="+path, "TMPDIR="+temp, "TMP="+temp)
	if err := cmd.Run(); err == nil {
		t.Fatal("it did not crash")
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), "next\n") || !strings.Contains(string(text), "on purpose") {
		t.Errorf("%v %q", err, text)
	}
}
