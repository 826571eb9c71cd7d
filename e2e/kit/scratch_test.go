//go:build unix

package kit

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const childEnv = "CCSHIP_TEST_SCRATCH"

// TestMake removes what a killed process left. The folders of live ones stay, and so does what is nobody's.
func TestMake(t *testing.T) {
	if in := os.Getenv(childEnv); in != "" {
		f, err := MakeScratch(in, "cct")
		Must(t, err)
		_, _ = os.Stdout.WriteString(f.Path + "\n")
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
		_ = f.Remove()
		return
	}
	in := t.TempDir()
	alive, left := child(t, in), child(t, in)
	kill(t, left)
	nobodys, others := filepath.Join(in, "cct-nobody"), filepath.Join(in, "another")
	for _, dir := range []string{nobodys, others} {
		Must(t, os.Mkdir(dir, 0o700))
	}
	Must(t, os.WriteFile(filepath.Join(others, owner), nil, 0o600))
	mine, err := MakeScratch(in, "cct")
	Must(t, err)
	again, err := MakeScratch(in, "cct")
	Must(t, err)
	for _, dir := range []string{alive.path, nobodys, others, mine.Path, again.Path} {
		_, err := os.Stat(dir)
		Check(t, err == nil, "%v", err)
	}
	_, err = os.Stat(left.path)
	Check(t, errors.Is(err, fs.ErrNotExist), "%s of a process that is gone: %v", left.path, err)
	Must(t, mine.Remove())
	_, err = os.Stat(mine.Path)
	Check(t, errors.Is(err, fs.ErrNotExist), "removed: %v", err)
}

// process is a child with a folder.
type process struct {
	*exec.Cmd
	path string
}

func child(t *testing.T, in string) process {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestMake$")
	cmd.Env = append(os.Environ(), childEnv+"="+in)
	_, err := cmd.StdinPipe()
	Must(t, err)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	Must(t, err)
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	b := make([]byte, 4096)
	n, err := out.Read(b)
	Require(t, err == nil && n >= 2, "%v %v", n, err)
	return process{cmd, string(b[:n-1])}
}

func kill(t *testing.T, p process) {
	t.Helper()
	Must(t, p.Process.Kill())
	_ = p.Wait()
}
