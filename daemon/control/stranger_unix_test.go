//go:build unix

package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// strangerVariable makes the test binary ask for the status of a socket, as another user runs it.
const strangerVariable = "CCSHIP_TEST_STRANGER"

// nobody is a user id that owns nothing.
const nobody = 65534

func TestMain(m *testing.M) {
	if path := os.Getenv(strangerVariable); path != "" {
		_, err := Dial(path).Status(context.Background())
		fmt.Printf("uid %d: %v\n", os.Getuid(), err)
		if e, ok := errors.AsType[*Error](err); ok {
			fmt.Println(e.Code, "hint:", e.Hint)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// program is this test binary where every user may run it.
func program(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	dir, err := os.MkdirTemp("", "ccs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "stranger")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close(), os.Chmod(path, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}

// Another user gets nowhere: not through the folder, not to the socket, and with both wide open not past the daemon,
// which asks the kernel who is there.
func TestStranger(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user too: run the tests as root for this one")
	}
	d := &fake{status: Status{SchemaVersion: 1, Running: true}}
	path := serve(t, d)
	binary := program(t)
	// The folder above the socket's is the test's, not ccship's.
	if err := os.Chmod(filepath.Dir(filepath.Dir(path)), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name           string
		folder, socket os.FileMode
	}{
		{"as it is made", 0o700, 0o600},
		{"open folder", 0o755, 0o600},
		{"open folder and socket", 0o755, 0o666},
	} {
		if err := errors.Join(os.Chmod(filepath.Dir(path), test.folder), os.Chmod(path, test.socket)); err != nil {
			t.Fatal(err)
		}
		ask := exec.CommandContext(t.Context(), binary)
		ask.Env = []string{strangerVariable + "=" + path}
		ask.Dir = "/"
		ask.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err := ask.CombinedOutput()
		said := string(out)
		if err != nil || !strings.HasPrefix(said, fmt.Sprintf("uid %d: ", nobody)) || !strings.Contains(said, "belongs to someone else\nsocket hint:") {
			t.Errorf("%s: %v %q", test.name, err, said)
		}
	}
	if status, err := Dial(path).Status(t.Context()); err != nil || !status.Running {
		t.Errorf("the owner: %+v %v", status, err)
	}
}
