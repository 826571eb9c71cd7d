//go:build unix

package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// strangerVariable makes the test binary ask for the status of a socket, as another user runs it.
const strangerVariable = "CCSHIP_TEST_STRANGER"

// squatterVariable makes the test binary listen on a socket, as another user runs it.
const squatterVariable = "CCSHIP_TEST_SQUATTER"

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
	if path := os.Getenv(squatterVariable); path != "" {
		squat(path)
	}
	os.Exit(m.Run())
}

// squat listens as a daemon would, until its input ends.
func squat(path string) {
	ln, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o777)
	}
	fmt.Println("listens", err)
	if err != nil {
		os.Exit(1)
	}
	go func() {
		_ = http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { // ends with the process
			_, _ = io.WriteString(w, `{"schema_version":1,"running":true}`)
		}))
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// program is this test binary where every user may run it.
func program(t *testing.T) string {
	t.Helper()
	self := kit.Try(os.Executable()).Must(t)
	from := kit.Try(os.Open(self)).Must(t)
	defer from.Close()
	dir := kit.Try(os.MkdirTemp("", "ccs")).Must(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "stranger")
	to := kit.Try(os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)).Must(t)
	_, err := io.Copy(to, from)
	kit.Must(t, errors.Join(err, to.Close(), os.Chmod(path, 0o755), os.Chmod(dir, 0o755)))
	return path
}

// Another user gets nowhere: the folder and the socket are closed, and behind both the daemon asks the kernel who asks.
func TestStranger(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user too: run the tests as root for this one")
	}
	d := &fake{status: Status{SchemaVersion: 1, Running: true}}
	path := serve(t, d)
	binary := program(t)
	// The folder above the socket's is the test's, not ccship's.
	kit.Must(t, os.Chmod(filepath.Dir(filepath.Dir(path)), 0o755))
	for _, test := range []struct {
		name           string
		folder, socket os.FileMode
	}{
		{"as it is made", 0o700, 0o600},
		{"open folder", 0o755, 0o600},
		{"open folder and socket", 0o755, 0o666},
	} {
		kit.Must(t, errors.Join(os.Chmod(filepath.Dir(path), test.folder), os.Chmod(path, test.socket)))
		ask := exec.CommandContext(t.Context(), binary)
		ask.Env = []string{strangerVariable + "=" + path}
		ask.Dir = "/"
		ask.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err := ask.CombinedOutput()
		said := string(out)
		kit.Check(t, err == nil && strings.HasPrefix(said, fmt.Sprintf("uid %d: ", nobody)) && strings.Contains(said, "belongs to someone else\nsocket hint:"),
			"%s: %v %q", test.name, err, said)
	}
	status, err := Dial(path).Status(t.Context())
	kit.Check(t, err == nil && status.Running, "the owner: %+v %v", status, err)
}

// TestSquatter: another user who listens at the daemon's place is not asked, and no daemon listens in their folder.
func TestSquatter(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user too: run the tests as root for this one")
	}
	binary := program(t)
	for name, owner := range map[string]int{"folder of another": nobody, "folder that all may write": 0} {
		dir := kit.Try(os.MkdirTemp("", "ccs")).Must(t)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		kit.Must(t, errors.Join(os.Chown(dir, owner, owner), os.Chmod(dir, 0o777)))
		path := filepath.Join(dir, "ccship.sock")
		other := exec.CommandContext(t.Context(), binary)
		other.Env, other.Dir = []string{squatterVariable + "=" + path}, "/"
		other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		in, errIn := other.StdinPipe()
		out, errOut := other.StdoutPipe()
		kit.Must(t, errors.Join(errIn, errOut, other.Start()))
		line, err := bufio.NewReader(out).ReadString('\n')
		kit.Require(t, line == "listens <nil>\n", "%s: %v %q", name, err, line)
		_, asked := Dial(path).Status(t.Context())
		_, _, reached := Reach(t.Context(), []string{path})
		_, listened := Listen(path)
		for what, err := range map[string]error{"ask": asked, "reach": reached, "listen": listened} {
			e, ok := errors.AsType[*Error](err)
			kit.Check(t, ok && e.Code == CodeSocket && strings.Contains(e.Message, "belongs to someone else"), "%s, %s: %v", name, what, err)
		}
		kit.Must(t, errors.Join(in.Close(), other.Wait()))
		_, listened = Listen(path) // nobody listens there any more
		kit.Check(t, (listened != nil) == (owner == nobody), "%s, afterwards: %v", name, listened)
	}
}
