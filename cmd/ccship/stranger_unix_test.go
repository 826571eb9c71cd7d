//go:build unix

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// asNobody runs a program as a user who owns nothing, and compares its exit code. Only root can.
func asNobody(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: asnobody CODE PROGRAM ARGS…")
	}
	found, err := exec.LookPath(args[1])
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if path := filepath.Join(dir, args[1]); err != nil {
			found, err = exec.LookPath(path)
		}
	}
	ts.Check(err)
	dir, err := os.MkdirTemp("", "ccn")
	ts.Check(err)
	ts.Defer(func() { _ = os.RemoveAll(dir) })
	ts.Check(os.Chmod(dir, 0o755)) // the script's own folders are closed to others
	program := filepath.Join(dir, args[1])
	ts.Check(copyProgram(found, program))
	cmd := exec.Command(program, args[2:]...)
	cmd.Dir, cmd.Env = "/", []string{"HOME=" + dir, "PATH=/usr/bin:/bin"}
	cmd.Stdout, cmd.Stderr = ts.Stdout(), ts.Stderr()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	got := "exit status 0"
	if err := cmd.Run(); err != nil {
		got = err.Error()
	}
	if got != "exit status "+args[0] {
		ts.Fatalf("%v: %s, want exit status %s", args[1:], got, args[0])
	}
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Chmod(to, 0o755)
}
