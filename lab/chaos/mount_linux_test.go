package chaos

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// mount is a folder of a space that is seen through the file system of faults.
type mount struct {
	t        testing.TB
	Back, At string
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      *bufio.Reader
}

// newMount moves a folder's content aside and mounts it where it was. Without FUSE the test is skipped.
func newMount(t testing.TB, at string) *mount {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs /dev/fuse and root")
	}
	m := &mount{t: t, At: at, Back: at + ".back"}
	kit.Must(t, os.Rename(at, m.Back))
	kit.Must(t, os.Mkdir(at, 0o700))
	self := kit.Try(os.Executable()).Must(t)
	m.cmd = exec.Command(self)
	m.cmd.Env = append(os.Environ(), fsEnv+"="+m.Back+":"+at)
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	m.cmd.Stderr = os.Stderr
	m.in = kit.Try(m.cmd.StdinPipe()).Must(t)
	out := kit.Try(m.cmd.StdoutPipe()).Must(t)
	m.out = bufio.NewReader(out)
	kit.Must(t, m.cmd.Start())
	t.Cleanup(func() {
		_ = m.in.Close()
		_ = syscall.Unmount(at, syscall.MNT_DETACH) // again, for one that was killed
		_ = m.cmd.Wait()
	})
	if line, err := m.out.ReadString('\n'); err != nil || line != "mounted\n" {
		if os.Getenv("CCSHIP_CI") == "" {
			t.Skip("a file system in user space can't be mounted here")
		}
		t.Fatalf("mount: %q, %v", line, err)
	}
	return m
}

// set changes what goes wrong, and answers what came of the last one.
func (m *mount) set(s spoil) spoiled {
	m.t.Helper()
	text := kit.Try(json.Marshal(s)).Must(m.t)
	return m.ask(text)
}

func (m *mount) clean() spoiled { m.t.Helper(); return m.set(spoil{}) }

// hits is how many calls went wrong so far.
func (m *mount) hits() int { m.t.Helper(); return m.ask(nil).Hits }

func (m *mount) ask(line []byte) (was spoiled) {
	m.t.Helper()
	kit.Try(m.in.Write(append(line, '\n'))).Must(m.t)
	answer, err := m.out.ReadBytes('\n')
	kit.Must(m.t, errors.Join(err))
	kit.Must(m.t, json.Unmarshal(answer, &was))
	return was
}

// behind is the path past the mount of a path below it.
func (m *mount) behind(path string) string {
	rest := kit.Try(filepath.Rel(m.At, path)).Must(m.t)
	return filepath.Join(m.Back, rest)
}

// mountedRoom is a room with one of its folders behind a mount: state, roots, server.
func mountedRoom(setting string) func(t testing.TB, out *kit.Outcome) *room {
	return func(t testing.TB, out *kit.Outcome) *room {
		t.Helper()
		r := emptyRoom(t, out)
		var m *mount
		switch setting {
		case "state":
			m = newMount(t, r.state())
		case "server":
			m = newMount(t, filepath.Join(r.dir, "server"))
		case "roots":
			at := r.projects()
			m = newMount(t, at)
			r.env = append(r.env, "CCSHIP_ROOTS="+at)
			r.paths["roots"] = m.Back // transcripts are written past the mount
		}
		r.mount = m
		r.furnish(6)
		return r
	}
}

// servesFaults reports whether this process is the file system of another one; it has ended then.
func servesFaults() bool {
	if os.Getenv(fsEnv) == "" {
		return false
	}
	os.Exit(serveFaults())
	return true
}
